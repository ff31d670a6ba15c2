/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols as assemblers leave them: a label without a type and size, behind which other functions
 * follow whose symbols a stripped file has lost; a function of type STT_OBJECT, as GHC makes them.
 */
asm(".text\n"
    ".globl label\n"
    "label: nop; nop; ret\n" /* nothing tells where it ends */
    ".globl described\n"
    "described: .cfi_startproc; nop; nop; ret; .cfi_endproc\n"
    ".skip 256, 0x90\n"
    "hidden: nop; nop; ret\n"
    ".globl object; .type object, @object\n"
    "object: nop; nop; nop; ret\n"
    ".size object, . - object\n");

void label(void), described(void), object(void);

/* Without a symbol in a stripped file. */
static __attribute__((noinline)) int square(int number)
{
	asm volatile("" : "+r"(number));
	return number * number;
}

int call_all(int number)
{
	label();
	described();
	object();
	return square(number) + 1;
}
