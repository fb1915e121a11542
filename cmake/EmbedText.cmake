# Writes OUTPUT, the text of FILE as a raw string literal of C++. The text is shorter than 65,536
# characters, which is what a literal may have.
file(READ ${FILE} content)
file(WRITE ${OUTPUT} "R\"text(${content})text\"\n")
