"""Models and transforms of torchaudio for export_real_models.py: name -> function giving (module, arguments[, options])."""
import math

import torch
import torchaudio
from torchaudio import functional as F
from torchaudio import models as M
from torchaudio import transforms as T


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def wave(*shape, rate=16000.0):
    t = torch.arange(shape[-1]) / rate
    tone = 0.4 * torch.sin(2 * math.pi * 440 * t) + 0.2 * torch.sin(2 * math.pi * 1330 * t)
    return tone + 0.05 * rand(*shape)


MODELS = {}

small_wav2vec2 = dict(extractor_mode="group_norm", extractor_conv_layer_config=[(32, 10, 5), (32, 3, 2), (32, 3, 2)], extractor_conv_bias=False,
                      encoder_embed_dim=48, encoder_projection_dropout=0.1, encoder_pos_conv_kernel=16, encoder_pos_conv_groups=4,
                      encoder_num_layers=2, encoder_num_heads=4, encoder_attention_dropout=0.1, encoder_ff_interm_features=96,
                      encoder_ff_interm_dropout=0.1, encoder_dropout=0.1, encoder_layer_norm_first=False, encoder_layer_drop=0.1, aux_num_out=20)


def wav2vec2():
    return M.wav2vec2_model(**small_wav2vec2), (wave(2, 2000), torch.tensor([2000, 1500]))


def wav2vec2_layer_norm():
    options = dict(small_wav2vec2, extractor_mode="layer_norm", extractor_conv_bias=True, encoder_layer_norm_first=True)
    return M.wav2vec2_model(**options), (wave(1, 2000), None)


def wavlm():
    options = dict(small_wav2vec2, encoder_num_buckets=32, encoder_max_distance=64)
    return M.wavlm_model(**options), (wave(2, 2000), None)


class ExtractFeatures(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor):
        return self.model.extract_features(x, None, 1)


def conformer():
    return M.Conformer(input_dim=32, num_heads=4, ffn_dim=48, num_layers=2, depthwise_conv_kernel_size=15), (rand(2, 20, 32), torch.tensor([20, 13]))


def emformer():
    return M.Emformer(32, 4, 48, 2, 4, right_context_length=1, left_context_length=4), (rand(2, 13, 32), torch.tensor([12, 9]))


class EmformerStream(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = M.Emformer(32, 4, 48, 2, 4, right_context_length=1, left_context_length=4, max_memory_size=2)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        a, _, state = self.model.infer(x[:, :5], lengths)
        b, _, state = self.model.infer(x[:, 4:9], lengths, state)
        return a, b, state


def rnnt():
    model = M.rnnt.emformer_rnnt_model(input_dim=16, encoding_dim=24, num_symbols=20, segment_length=8, right_context_length=4, time_reduction_input_dim=8,
                                       time_reduction_stride=4, transformer_num_heads=2, transformer_ffn_dim=32, transformer_num_layers=2,
                                       transformer_dropout=0.1, transformer_activation="gelu", transformer_left_context_length=4, transformer_max_memory_size=0,
                                       transformer_weight_init_scale_strategy="depthwise", transformer_tanh_on_mem=True, symbol_embedding_dim=16,
                                       num_lstm_layers=2, lstm_layer_norm=True, lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.3)
    return model, (rand(2, 28, 16), torch.tensor([24, 20]), torch.tensor([[1, 4, 7], [2, 9, 0]], dtype=torch.int32), torch.tensor([3, 2], dtype=torch.int32), None)


class Prenet(torch.nn.Module):
    """Tacotron's, without its dropout, which stays on in evaluation."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Speak(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor):
        return self.model.infer(tokens, lengths)


def tacotron2(speak=False):
    model = M.Tacotron2(n_mels=12, n_symbol=30, symbol_embedding_dim=32, encoder_embedding_dim=32, encoder_n_convolution=2, decoder_rnn_dim=40, decoder_max_step=12,
                        attention_rnn_dim=36, attention_hidden_dim=16, attention_location_n_filter=4, attention_location_kernel_size=7, prenet_dim=20,
                        postnet_n_convolution=3, postnet_embedding_dim=24, decoder_early_stopping=False)
    model.decoder.prenet = Prenet(model.decoder.prenet.layers)
    if speak:
        return Speak(model), (torch.tensor([[3, 7, 1, 12, 9, 4], [5, 8, 2, 6, 0, 0]]), torch.tensor([6, 4]))
    return model, (torch.tensor([[3, 7, 1, 12, 9, 4], [5, 8, 2, 6, 0, 0]]), torch.tensor([6, 4]), rand(2, 12, 9), torch.tensor([9, 7]))


def wavernn():
    model = M.WaveRNN(upsample_scales=[5, 4, 2], n_classes=32, hop_length=40, n_res_block=2, n_rnn=24, n_fc=32, kernel_size=5, n_freq=16, n_hidden=20, n_output=24)
    return model, (rand(2, 1, 40 * 6), rand(2, 1, 16, 10))


def hdemucs():
    return M.HDemucs(sources=["drums", "vocals"], channels=8, depth=5, nfft=1024), (0.3 * rand(1, 2, 8192),), {"trace": True}


class Features(torch.nn.Module):
    """What speech front ends do: spectrogram to normalised features with deltas."""

    def __init__(self):
        super().__init__()
        self.mel = T.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=40)
        self.decibel = T.AmplitudeToDB("power", 80.0)
        self.deltas = T.ComputeDeltas(5)
        self.norm = T.SlidingWindowCmn(60, 20, True, False)

    def forward(self, x: torch.Tensor):
        y = self.decibel(self.mel(x))
        return y, self.deltas(y), self.norm(y.transpose(-1, -2))


class Spectra(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.forth = T.Spectrogram(256, hop_length=64, power=None)
        self.back = T.InverseSpectrogram(256, hop_length=64)
        self.stretch = T.TimeStretch(64, 129, 1.2)
        self.power = T.Spectrogram(256, normalized=True, center=False)
        self.centroid = T.SpectralCentroid(16000, 256)

    def forward(self, x: torch.Tensor):
        s = self.forth(x)
        return s, self.back(s, x.size(-1)), self.stretch(s).abs(), self.power(x), self.centroid(x)


class Phase(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.spectrogram = T.Spectrogram(128, hop_length=32)
        self.griffin_lim = T.GriffinLim(128, 8, hop_length=32, rand_init=False)

    def forward(self, x: torch.Tensor):
        return self.griffin_lim(self.spectrogram(x))


class Cepstra(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mfcc = T.MFCC(16000, 13, melkwargs={"n_fft": 400, "hop_length": 160, "n_mels": 23, "mel_scale": "htk"}, log_mels=True)
        self.lfcc = T.LFCC(16000, n_filter=32, n_lfcc=12, speckwargs={"n_fft": 400, "hop_length": 160})

    def forward(self, x: torch.Tensor):
        return self.mfcc(x), self.lfcc(x)


class Samples(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.resample = T.Resample(16000, 11025)
        self.up = T.Resample(8000, 12000, resampling_method="sinc_interp_kaiser")
        self.encode = T.MuLawEncoding(256)
        self.decode = T.MuLawDecoding(256)
        self.fade = T.Fade(200, 300, "logarithmic")
        self.volume = T.Vol(6.0, "db")
        self.pre = T.Preemphasis(0.97)
        self.de = T.Deemphasis(0.97)

    def forward(self, x: torch.Tensor):
        codes = self.encode(x)
        return self.resample(x), self.up(x), codes, self.decode(codes), self.fade(x), self.volume(x), self.pre(x), self.de(x)


class Filters(torch.nn.Module):
    def forward(self, x: torch.Tensor, h: torch.Tensor):
        a = F.biquad(x, 0.4, 0.2, 0.1, 1.0, -0.3, 0.1)
        b = F.lowpass_biquad(x, 16000, 1000.0)
        c = F.equalizer_biquad(x, 16000, 1500.0, 3.0)
        d = F.highpass_biquad(x, 16000, 3000.0)
        return a, b, c, d, F.convolve(x, h), F.fftconvolve(x, h), F.contrast(x, 60.0), F.dcshift(x, 0.1), F.gain(x, 3.0), F.overdrive(x, 12.0)


class Beamformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.psd = T.PSD()
        self.mvdr = T.SoudenMVDR()
        self.rtf = T.RTFMVDR()

    def forward(self, spectrum: torch.Tensor, speech: torch.Tensor, noise: torch.Tensor):
        s, n = self.psd(spectrum, speech), self.psd(spectrum, noise)
        rtf = F.rtf_power(s, n, 0)
        return self.mvdr(spectrum, s, n, 0), self.rtf(spectrum, rtf, n, 0)


def beamformer():
    spectrum = torch.complex(rand(3, 17, 20), rand(3, 17, 20, seed=2))
    return Beamformer(), (spectrum, torch.rand(17, 20), torch.rand(17, 20))


class Masks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = T.MelScale(20, 16000, n_stft=65)
        self.loudness = T.Loudness(16000)

    def forward(self, x: torch.Tensor, power: torch.Tensor):
        return self.scale(power), self.loudness(x)


MODELS.update({
    "wav2vec2": wav2vec2,
    "wav2vec2_layer_norm": wav2vec2_layer_norm,
    "wavlm": wavlm,
    "wav2vec2_features": lambda: (ExtractFeatures(M.wav2vec2_model(**small_wav2vec2)), (wave(1, 2000),)),
    "conformer": conformer,
    "emformer": emformer,
    "emformer_stream": lambda: (EmformerStream(), (rand(2, 9, 32), torch.tensor([5, 5]))),
    "rnnt": rnnt,
    "tacotron2": tacotron2,
    "tacotron2_infer": lambda: tacotron2(True),
    "wavernn": wavernn,
    "wav2letter": lambda: (M.Wav2Letter(20, "mfcc", 13), (rand(2, 13, 120),)),
    "deepspeech": lambda: (M.DeepSpeech(26, 48, 20), (rand(2, 1, 15, 26),), {"trace": True}),
    "conv_tasnet": lambda: (M.ConvTasNet(2, 8, 32, 3, 16, 32, 3, 2), (rand(2, 1, 800),)),
    "hdemucs": hdemucs,
    "squim_objective": lambda: (M.squim_objective_model(feat_dim=32, win_len=16, d_model=16, nhead=4, hidden_dim=24, num_blocks=2, rnn_type="LSTM", chunk_size=20),
                                (wave(1, 2400),)),
    "transforms_features": lambda: (Features(), (wave(1, 6400),)),
    "transforms_spectra": lambda: (Spectra(), (wave(2, 2000),)),
    "transforms_griffin_lim": lambda: (Phase(), (wave(1, 1600),)),
    "transforms_cepstra": lambda: (Cepstra(), (wave(1, 4000),)),
    "transforms_samples": lambda: (Samples(), (wave(2, 1500),)),
    "functional_filters": lambda: (Filters(), (wave(2, 500), rand(2, 30))),
    "transforms_beamformer": beamformer,
    "transforms_loudness": lambda: (Masks(), (wave(1, 8000), rand(1, 65, 9).abs())),
})
