module goid

go 1.16
