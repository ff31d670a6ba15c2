module gostacks

go 1.16
