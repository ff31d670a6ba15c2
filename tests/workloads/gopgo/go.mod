module gopgo

go 1.21
