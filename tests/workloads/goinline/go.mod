module goinline

go 1.18
