# SPDX-License-Identifier: Apache-2.0
"""The PLT stubs of a program, as objdump names them."""
import re
import subprocess

LINE = re.compile(r"^0*([0-9a-f]+) <(.*)@plt>:$")


def stubs(path, objdump="objdump"):
    """ELF address -> `function@plt` of each stub. Missing sections are no error."""
    r = subprocess.run([objdump, "-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path],
                       capture_output=True, text=True)
    found = (LINE.match(line) for line in r.stdout.split("\n"))
    return {int(m.group(1), 16): m.group(2).split("@")[0] + "@plt" for m in found if m}
