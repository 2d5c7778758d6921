"""Models of transformers for export_real_models.py: name -> function giving (module, arguments[, options]).

Small configurations, traced; outputs become tuples of their tensors."""
import torch
import transformers as tf


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(*shape, high=90, seed=2):
    return torch.randint(5, high, shape, generator=torch.Generator().manual_seed(seed))


class Plain(torch.nn.Module):
    """A model with named arguments in a fixed order, whose result is a tuple of tensors."""

    def __init__(self, model, names, constants):
        super().__init__()
        self.model, self.names, self.constants = model, names, constants

    def forward(self, *values):
        result = self.model(**dict(zip(self.names, values)), **self.constants)
        values = result.to_tuple() if hasattr(result, "to_tuple") else result
        return tuple(v for v in values if isinstance(v, torch.Tensor))


MODELS = {}
text = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64)
TEXT = {"input_ids": lambda: ids(2, 12)}
MASKED = {"input_ids": lambda: ids(2, 12), "attention_mask": lambda: (torch.arange(12)[None] < torch.tensor([[12], [8]])).long()}
SEQ2SEQ = {"input_ids": lambda: ids(2, 12), "decoder_input_ids": lambda: ids(2, 7, seed=3)}
PIXELS = {"pixel_values": lambda: rand(1, 3, 32, 32)}


def model(name, kind, config, inputs, constants=None, **options):
    def build():
        settings = config() if callable(config) else config
        configuration = getattr(tf, kind[1])(**settings)
        module = getattr(tf, kind[0])(configuration).eval()
        for key, value in module.named_buffers():
            if key.endswith("codebook.embed"):      # zeros would make every code the first
                torch.nn.init.normal_(value)
        return (Plain(module, list(inputs), dict(constants or {})), tuple(make() for make in inputs.values()), {"trace": True, **options})
    MODELS["hf_" + name] = build


model("bert", ("BertForMaskedLM", "BertConfig"), text, MASKED)
model("roberta", ("RobertaForSequenceClassification", "RobertaConfig"), dict(text, pad_token_id=1), MASKED)
model("distilbert", ("DistilBertForQuestionAnswering", "DistilBertConfig"), dict(vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64), MASKED)
model("albert", ("AlbertModel", "AlbertConfig"), dict(text, embedding_size=16), MASKED)
model("electra", ("ElectraForTokenClassification", "ElectraConfig"), dict(text, embedding_size=16), MASKED)
model("deberta", ("DebertaModel", "DebertaConfig"), dict(text, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=32), MASKED)
model("deberta_v2", ("DebertaV2Model", "DebertaV2Config"), dict(text, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True), MASKED)
model("mpnet", ("MPNetModel", "MPNetConfig"), text, MASKED)
model("layoutlm", ("LayoutLMModel", "LayoutLMConfig"), text, {"input_ids": TEXT["input_ids"], "bbox": lambda: ids(2, 12, 4, high=60).sort(-1).values})
model("xlnet", ("XLNetModel", "XLNetConfig"), dict(vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=48), TEXT)
model("modernbert", ("ModernBertModel", "ModernBertConfig"), dict(text, global_attn_every_n_layers=2, local_attention=8, pad_token_id=0), MASKED)
model("squeezebert", ("SqueezeBertModel", "SqueezeBertConfig"), dict(text, embedding_size=32, q_groups=2, k_groups=2, v_groups=2, intermediate_groups=2, output_groups=2, post_attention_groups=1), MASKED)
model("convbert", ("ConvBertModel", "ConvBertConfig"), dict(text, embedding_size=32, head_ratio=2, conv_kernel_size=3), MASKED)
model("fnet", ("FNetModel", "FNetConfig"), dict(text, use_tpu_fourier_optimizations=False), TEXT)
model("funnel", ("FunnelModel", "FunnelConfig"), dict(vocab_size=100, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=48), MASKED)
model("longformer", ("LongformerModel", "LongformerConfig"), dict(text, attention_window=4), {"input_ids": lambda: ids(1, 12)})
model("big_bird", ("BigBirdModel", "BigBirdConfig"), dict(text, attention_type="original_full"), MASKED)

NO_CACHE = {"use_cache": False}
model("gpt2", ("GPT2LMHeadModel", "GPT2Config"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64), MASKED, NO_CACHE)
model("gpt_neo", ("GPTNeoForCausalLM", "GPTNeoConfig"), dict(vocab_size=100, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4, max_position_embeddings=64), TEXT, NO_CACHE)
model("gptj", ("GPTJForCausalLM", "GPTJConfig"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4), TEXT, NO_CACHE)
model("gpt_neox", ("GPTNeoXForCausalLM", "GPTNeoXConfig"), text, TEXT, NO_CACHE)
model("opt", ("OPTForCausalLM", "OPTConfig"), dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, ffn_dim=48, num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=32), MASKED, NO_CACHE)
gqa = dict(text, num_key_value_heads=2, head_dim=8)
model("llama", ("LlamaForCausalLM", "LlamaConfig"), gqa, MASKED, NO_CACHE)
model("llama3_rope", ("LlamaModel", "LlamaConfig"), dict(gqa, rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}), TEXT, NO_CACHE)
model("mistral", ("MistralForCausalLM", "MistralConfig"), dict(gqa, sliding_window=4), TEXT, NO_CACHE)
model("qwen2", ("Qwen2ForCausalLM", "Qwen2Config"), gqa, MASKED, NO_CACHE)
model("qwen3", ("Qwen3ForCausalLM", "Qwen3Config"), gqa, TEXT, NO_CACHE)
model("gemma", ("GemmaForCausalLM", "GemmaConfig"), gqa, TEXT, NO_CACHE)
model("gemma2", ("Gemma2ForCausalLM", "Gemma2Config"), dict(gqa, sliding_window=4, query_pre_attn_scalar=8), TEXT, NO_CACHE)
model("phi", ("PhiForCausalLM", "PhiConfig"), dict(text, partial_rotary_factor=0.5), TEXT, NO_CACHE)
model("phi3", ("Phi3ForCausalLM", "Phi3Config"), dict(text, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2), TEXT, NO_CACHE)
model("falcon", ("FalconForCausalLM", "FalconConfig"), dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4), TEXT, NO_CACHE)
model("stablelm", ("StableLmForCausalLM", "StableLmConfig"), gqa, TEXT, NO_CACHE)
model("mamba", ("MambaForCausalLM", "MambaConfig"), dict(vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2), TEXT, NO_CACHE)
model("mamba2", ("Mamba2ForCausalLM", "Mamba2Config"), dict(vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2, num_heads=8, head_dim=8, n_groups=2, chunk_size=4), TEXT, NO_CACHE)
model("rwkv", ("RwkvModel", "RwkvConfig"), dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32, intermediate_size=48, context_length=32), TEXT, NO_CACHE)
model("mixtral", ("MixtralForCausalLM", "MixtralConfig"), dict(gqa, num_local_experts=4, experts_implementation="eager"), TEXT, NO_CACHE)

model("t5", ("T5ForConditionalGeneration", "T5Config"), dict(vocab_size=100, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4), SEQ2SEQ, NO_CACHE)
bart = dict(vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=1, decoder_start_token_id=2)
model("bart", ("BartForConditionalGeneration", "BartConfig"), bart, SEQ2SEQ, NO_CACHE)
model("marian", ("MarianMTModel", "MarianConfig"), bart, SEQ2SEQ, NO_CACHE)
model("pegasus", ("PegasusForConditionalGeneration", "PegasusConfig"), bart, SEQ2SEQ, NO_CACHE)
model("m2m_100", ("M2M100Model", "M2M100Config"), bart, SEQ2SEQ, NO_CACHE)
model("blenderbot", ("BlenderbotModel", "BlenderbotConfig"), bart, SEQ2SEQ, NO_CACHE)

vision = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
model("vit", ("ViTForImageClassification", "ViTConfig"), vision, PIXELS)
model("deit", ("DeiTModel", "DeiTConfig"), vision, PIXELS)
model("beit", ("BeitModel", "BeitConfig"), dict(vision, use_relative_position_bias=True, layer_scale_init_value=0.1), PIXELS)
model("dinov2", ("Dinov2Model", "Dinov2Config"), dict(vision, mlp_ratio=2), PIXELS)
model("vit_mae", ("ViTMAEModel", "ViTMAEConfig"), dict(vision, mask_ratio=0.5), {"pixel_values": PIXELS["pixel_values"], "noise": lambda: rand(1, 16)})
model("clip", ("CLIPModel", "CLIPConfig"), lambda: dict(text_config=dict(text, eos_token_id=2), vision_config=vision, projection_dim=16), {"input_ids": lambda: ids(2, 12), "pixel_values": lambda: rand(2, 3, 32, 32)})
model("siglip", ("SiglipModel", "SiglipConfig"), lambda: dict(text_config=text, vision_config=vision), {"input_ids": lambda: ids(2, 12), "pixel_values": lambda: rand(2, 3, 32, 32)})
model("convnextv2", ("ConvNextV2ForImageClassification", "ConvNextV2Config"), dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]), {"pixel_values": lambda: rand(1, 3, 64, 64)})
model("swin", ("SwinModel", "SwinConfig"), dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4), PIXELS)
model("segformer", ("SegformerForSemanticSegmentation", "SegformerConfig"), dict(hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4], depths=[1, 1, 1, 1], decoder_hidden_size=16), {"pixel_values": lambda: rand(1, 3, 64, 64)})
model("mobilevit", ("MobileViTModel", "MobileViTConfig"), dict(hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 16, 16, 24, 24, 32, 32]), {"pixel_values": lambda: rand(1, 3, 128, 128)})
model("resnet", ("ResNetModel", "ResNetConfig"), dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]), {"pixel_values": lambda: rand(1, 3, 64, 64)})
model("yolos", ("YolosForObjectDetection", "YolosConfig"), dict(vision, image_size=[32, 32], num_detection_tokens=6), PIXELS)
detr = dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=6)
model("detr", ("DetrForObjectDetection", "DetrConfig"), lambda: dict(detr, backbone_config=tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=["stage4"])), {"pixel_values": lambda: rand(1, 3, 64, 64)})
model("sam_vision", ("SamVisionModel", "SamVisionConfig"), dict(hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_size=3, global_attn_indexes=[1], mlp_dim=48), {"pixel_values": lambda: rand(1, 3, 64, 64)})

model("whisper", ("WhisperForConditionalGeneration", "WhisperConfig"), dict(bart, num_mel_bins=16, max_source_positions=30, max_target_positions=32), {"input_features": lambda: rand(1, 16, 60), "decoder_input_ids": lambda: ids(1, 7)}, NO_CACHE)
wav = dict(vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=[16, 16, 16], conv_kernel=[10, 3, 3], conv_stride=[5, 2, 2], num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
WAVE = {"input_values": lambda: rand(1, 1200)}
model("wav2vec2", ("Wav2Vec2ForCTC", "Wav2Vec2Config"), wav, WAVE)
model("hubert", ("HubertModel", "HubertConfig"), wav, WAVE)
model("wavlm", ("WavLMModel", "WavLMConfig"), dict(wav, num_buckets=16, max_bucket_distance=32), WAVE)
model("ast", ("ASTForAudioClassification", "ASTConfig"), dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, patch_size=8, frequency_stride=6, time_stride=6, max_length=48, num_mel_bins=32), {"input_values": lambda: rand(1, 48, 32)})
model("encodec", ("EncodecModel", "EncodecConfig"), dict(num_filters=4, hidden_size=16, codebook_size=32, codebook_dim=16, num_lstm_layers=1, upsampling_ratios=[4, 2], target_bandwidths=[24.0]), {"input_values": lambda: rand(1, 1, 480)})
model("speecht5_hifigan", ("SpeechT5HifiGan", "SpeechT5HifiGanConfig"), dict(model_in_dim=16, upsample_initial_channel=16, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], normalize_before=False), {"spectrogram": lambda: rand(1, 12, 16)})
model("vits_posterior", ("VitsModel", "VitsConfig"), dict(text, vocab_size=40, num_attention_heads=2, ffn_dim=48, flow_size=16, spectrogram_bins=17, upsample_initial_channel=16, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], wavenet_dilation_rate=1, prior_encoder_num_flows=2, posterior_encoder_num_wavenet_layers=2, prior_encoder_num_wavenet_layers=2, duration_predictor_num_flows=2, use_stochastic_duration_prediction=False, noise_scale=0.0), {"input_ids": lambda: ids(1, 9, high=40)})
model("time_series_transformer", ("PatchTSTForPrediction", "PatchTSTConfig"), dict(num_input_channels=2, context_length=24, patch_length=6, patch_stride=6, prediction_length=4, d_model=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=24), {"past_values": lambda: rand(2, 24, 2)})

# ---- further families, their bodies alone ----
special = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
grouped = dict(gqa, **special)
experts = dict(num_experts_per_tok=2, experts_implementation="eager")
model("aria_text", ("AriaTextModel", "AriaTextConfig"), dict(grouped, moe_num_experts=4, moe_topk=2, experts_implementation="eager"), TEXT, NO_CACHE)
model("bigbird_pegasus", ("BigBirdPegasusModel", "BigBirdPegasusConfig"), dict(bart, attention_type="original_full"), SEQ2SEQ, NO_CACHE)
model("biogpt", ("BioGptModel", "BioGptConfig"), dict(text, **special), TEXT, NO_CACHE)
model("bitnet", ("BitNetModel", "BitNetConfig"), dict(text, num_key_value_heads=2, bos_token_id=1, eos_token_id=2), TEXT, NO_CACHE)
model("canine", ("CanineModel", "CanineConfig"), dict({k: v for k, v in text.items() if k != "vocab_size"}, **special), TEXT)
model("codegen", ("CodeGenModel", "CodeGenConfig"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64, rotary_dim=4), TEXT, NO_CACHE)
model("cohere2", ("Cohere2Model", "Cohere2Config"), dict(grouped, sliding_window=4), TEXT, NO_CACHE)
model("ctrl", ("CTRLModel", "CTRLConfig"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64), TEXT, NO_CACHE)
model("deepseek_v4", ("DeepseekV4Model", "DeepseekV4Config"), dict(grouped, moe_intermediate_size=24, n_routed_experts=4, q_lora_rank=16, qk_rope_head_dim=8, sliding_window=4, **experts), TEXT, NO_CACHE)
model("diffllama", ("DiffLlamaModel", "DiffLlamaConfig"), grouped, TEXT, NO_CACHE)
model("doge", ("DogeModel", "DogeConfig"), dict(text, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2), TEXT, NO_CACHE)
model("ernie4_5_moe", ("Ernie4_5_MoeModel", "Ernie4_5_MoeConfig"), dict(text, num_key_value_heads=2, moe_intermediate_size=24, moe_num_experts=4, moe_k=2, experts_implementation="eager", **special), TEXT, NO_CACHE)
model("exaone4", ("Exaone4Model", "Exaone4Config"), dict(text, num_key_value_heads=2, sliding_window=4, bos_token_id=1, eos_token_id=2), TEXT, NO_CACHE)
model("falcon_mamba", ("FalconMambaModel", "FalconMambaConfig"), dict(vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2, intermediate_size=48, **special), TEXT, NO_CACHE)
model("fsmt", ("FSMTModel", "FSMTConfig"), dict(src_vocab_size=100, tgt_vocab_size=100, langs=["en", "de"], **{k: v for k, v in bart.items() if k != "vocab_size"}), SEQ2SEQ, NO_CACHE)
model("gemma3", ("Gemma3TextModel", "Gemma3TextConfig"), dict(grouped, sliding_window=4), TEXT, NO_CACHE)
model("glm4_moe", ("Glm4MoeModel", "Glm4MoeConfig"), dict(text, num_key_value_heads=2, moe_intermediate_size=24, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1, **experts), TEXT, NO_CACHE)
model("gpt_bigcode", ("GPTBigCodeModel", "GPTBigCodeConfig"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64), TEXT, NO_CACHE)
model("gpt_oss", ("GptOssModel", "GptOssConfig"), dict(gqa, num_local_experts=4, sliding_window=4, **experts), TEXT, NO_CACHE)
model("granitemoe", ("GraniteMoeModel", "GraniteMoeConfig"), dict(text, num_key_value_heads=2, num_local_experts=4, bos_token_id=1, eos_token_id=2, **experts), TEXT, NO_CACHE)
model("ibert", ("IBertModel", "IBertConfig"), dict(text, **special), TEXT)
model("imagegpt", ("ImageGPTModel", "ImageGPTConfig"), dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64), TEXT, NO_CACHE)
model("jetmoe", ("JetMoeModel", "JetMoeConfig"), dict(text, num_key_value_heads=2, kv_channels=8, num_local_experts=4, bos_token_id=1, eos_token_id=2, **experts), TEXT, NO_CACHE)
model("led", ("LEDModel", "LEDConfig"), dict({k: v for k, v in bart.items() if k != "max_position_embeddings"}, attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64), SEQ2SEQ, NO_CACHE)
model("lfm2", ("Lfm2Model", "Lfm2Config"), dict(text, num_key_value_heads=2, layer_types=["conv", "full_attention"], **special), TEXT, NO_CACHE)
model("dinov3_vit", ("DINOv3ViTModel", "DINOv3ViTConfig"), vision, PIXELS)
model("dpt", ("DPTForDepthEstimation", "DPTConfig"), dict(vision, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16), PIXELS)
model("focalnet", ("FocalNetModel", "FocalNetConfig"), dict(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1, 2], focal_levels=[2, 2, 2], focal_windows=[3, 3, 3], hidden_sizes=[16, 32, 64]), PIXELS)
model("hiera", ("HieraModel", "HieraConfig"), dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 8]), {"pixel_values": lambda: rand(1, 3, 64, 64)})
model("data2vec_audio", ("Data2VecAudioModel", "Data2VecAudioConfig"), dict(wav, conv_pos_kernel_size=3, num_conv_pos_embeddings=2), WAVE)
