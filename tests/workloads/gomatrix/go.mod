module gomatrix

go 1.16
