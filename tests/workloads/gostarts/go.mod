module gostarts

go 1.16
