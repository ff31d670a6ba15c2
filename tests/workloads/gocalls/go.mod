module gocalls

go 1.16
