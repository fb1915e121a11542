autocmd BufRead,BufNewFile *.tk setfiletype tk
