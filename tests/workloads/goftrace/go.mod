module goftrace

go 1.16
