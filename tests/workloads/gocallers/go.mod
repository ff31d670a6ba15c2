module gocallers

go 1.16
