# Writes OUT, a C file that holds the texts of FILES as byte arrays:
#   const struct fe_library_file { const char *name; const unsigned char *data; unsigned long length; }
#   fe_library_files[], fe_library_file_count
set(text "/* Made from frontend/library by embed_library.cmake. */\n")
set(table "")
set(i 0)
foreach(file ${FILES})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR length "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND text "static const unsigned char file_${i}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", file_${i}, ${length}},\n")
    math(EXPR i "${i} + 1")
endforeach()
string(APPEND text "struct fe_library_file { const char *name; const unsigned char *data; unsigned long length; };\n"
    "extern const struct fe_library_file fe_library_files[];\nextern const unsigned long fe_library_file_count;\n"
    "const struct fe_library_file fe_library_files[] = {\n${table}};\n"
    "const unsigned long fe_library_file_count = ${i};\n")
file(WRITE ${OUT} "${text}")
