# SPDX-License-Identifier: Apache-2.0
# One page out of index.html and the files that it includes: see the Makefile.
function include(name,    line, tag, path, got) {
	path = "agent/server/serve/page/" name
	tag = name ~ /\.css$/ ? "style" : "script"
	printf "<%s nonce=\"{{nonce}}\">\n", tag
	while ((got = (getline line < path)) > 0)
		print line
	if (got < 0) {
		print "page.awk: cannot read " path > "/dev/stderr"
		failed = 1
		exit 1
	}
	close(path)
	printf "</%s>\n", tag
}

/^<!-- include: [A-Za-z0-9_.-]+ -->$/ {
	include($3)
	next
}
{ print }
END { exit failed }
