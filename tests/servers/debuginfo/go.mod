module strictdebuginfo

go 1.24
