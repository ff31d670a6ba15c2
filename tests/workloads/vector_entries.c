/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that begin with a vector instruction, each beside one that does the same behind another
 * first instruction. Their results are compared argv[1] times. Prints for each how often it was
 * called and how often its result differed: never, unless somebody changed what it does.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In brackets: what the opcode byte means without VEX or EVEX prefix. */
#define EACH_AVX(DO)                                                            \
	DO(move_load, "vmovsd numbers(%rip),%xmm0") /* 10 [adc] */              \
	DO(move_store, "vmovups %xmm0,stored(%rip)") /* 11 [adc] */             \
	DO(unpack, "vunpcklps %xmm0,%xmm1,%xmm0") /* 14 [adc] */                \
	DO(move_high, "vmovhps numbers(%rip),%xmm0,%xmm0") /* 16 [invalid] */   \
	DO(move_aligned, "vmovaps numbers(%rip),%xmm0") /* 28 [sub] */          \
	DO(convert, "vcvtsi2sd %rdi,%xmm0,%xmm0") /* 2a [sub] */                \
	DO(truncate, "vcvttsd2si %xmm0,%rax") /* 2c [sub] */                    \
	DO(mask, "vmovmskpd %xmm0,%eax") /* 50 [push] */                        \
	DO(root, "vsqrtsd numbers(%rip),%xmm0,%xmm0") /* 51 [push] */           \
	DO(and, "vandps numbers(%rip),%xmm0,%xmm0") /* 54 [push] */             \
	DO(zero, "vxorps %xmm0,%xmm0,%xmm0") /* 57 [push] */                    \
	DO(add, "vaddsd numbers(%rip),%xmm0,%xmm0") /* 58 [pop] */              \
	DO(multiply, "vmulsd %xmm1,%xmm0,%xmm0") /* 59 [pop] */                 \
	DO(greater, "vmaxsd %xmm1,%xmm0,%xmm0") /* 5f [pop] */                  \
	DO(from_general, "vmovq %rdi,%xmm0") /* 6e [outs] */                    \
	DO(load, "vmovdqu numbers(%rip),%xmm0") /* 6f [outs] */                 \
	DO(shuffle, "vpshufd $27,%xmm0,%xmm0") /* 70 [jo] */                    \
	DO(shift, "vpslld $3,%xmm0,%xmm0") /* 72 [jb] */                        \
	DO(equal, "vpcmpeqb %xmm0,%xmm0,%xmm0") /* 74 [je] */                   \
	DO(to_general, "vmovq %xmm0,%rax") /* 7e [jle] */                       \
	DO(store, "vmovdqu %xmm0,stored(%rip)") /* 7f [jg] */                   \
	DO(compare, "vcmpltsd %xmm1,%xmm0,%xmm0") /* c2 [ret] */                \
	DO(shuffle_float, "vshufps $9,%xmm1,%xmm0,%xmm0") /* c6 [mov] */        \
	DO(subtract_bytes, "vpsubsb numbers(%rip),%xmm0,%xmm0") /* e8 [call] */ \
	DO(smaller, "vpminsw %xmm1,%xmm0,%xmm0") /* ea [invalid] */             \
	DO(or, "vpor %xmm1,%xmm0,%xmm0") /* eb [jmp] */                         \
	DO(exclusive_or, "vpxor %xmm1,%xmm0,%xmm0") /* ef [outs] */             \
	DO(add_words, "vpaddd %xmm1,%xmm0,%xmm0") /* fe [inc] */

#define EACH_FMA(DO)                                                           \
	DO(fused_98, "vfmadd132pd numbers(%rip),%xmm0,%xmm0") /* [cltq] */     \
	DO(fused_9a, "vfmsub132ps numbers(%rip),%xmm0,%xmm0") /* [far call] */ \
	DO(fused_9d, "vfnmadd132sd numbers(%rip),%xmm0,%xmm0") /* [popf] */    \
	DO(fused_a9, "vfmadd213sd numbers(%rip),%xmm1,%xmm0") /* [test] */     \
	DO(fused_ad, "vfnmadd213sd %xmm1,%xmm1,%xmm0") /* [lods] */            \
	DO(fused_bb, "vfmsub231sd numbers(%rip),%xmm1,%xmm0") /* [mov] */

#define EACH_BITS(DO)                                        \
	DO(and_not, "andn %rsi,%rdi,%rax") /* f2 [prefix] */ \
	DO(high_bits, "bzhi %rsi,%rdi,%rax") /* f5 [cmc] */  \
	DO(shift_left, "shlx %rsi,%rdi,%rax") /* f7 [test] */

#define EACH_AVX512(DO)                                                                   \
	DO(wide_spread, "vpbroadcastb %esi,%xmm16\nvmovdqa64 %xmm16,%xmm0") /* 7a [jp] */ \
	DO(wide_add, "vaddpd numbers(%rip){1to2},%xmm0,%xmm0") /* 58 [pop] */

#define EACH(DO) EACH_AVX(DO) EACH_FMA(DO) EACH_BITS(DO) EACH_AVX512(DO)

typedef double function(long, long, double, double);

#define PLACE(name, first, body)                                               \
	".globl " #name "\n.type " #name ",@function\n" #name ":\n" first body \
	"\nret\n.size " #name ",.-" #name "\n"
#define CODE(name, body) PLACE(name, "", body) PLACE(name##_again, "mov %edi,%edi\n", body)
__asm__(".text\n" EACH(CODE));

__attribute__((aligned(16))) double numbers[2] = { 2.5, 3.5 };
__attribute__((aligned(16))) double stored[2];

#define DECLARED(name, body) function name, name##_again;
EACH(DECLARED)

struct pair {
	const char *name;
	function *first, *again;
	unsigned long calls, different;
};

struct result {
	double value, stored;
	uint64_t general;
};

static struct result called(function *f)
{
	register long first __asm__("rdi") = 0x1234;
	register long second __asm__("rsi") = 5;
	register uint64_t general __asm__("rax") = 0x77;
	register double value __asm__("xmm0") = 1.5;
	register double other __asm__("xmm1") = -7.25;
	struct result result;

	stored[0] = 0;
	__asm__ volatile("call *%[f]"
			 : "+x"(value), "+x"(other), "+r"(first), "+r"(second), "+r"(general)
			 : [f] "r"(f)
			 : "memory", "cc", "rcx", "rdx", "r8", "r9", "r10", "r11");
	result.general = general;
	result.value = value;
	result.stored = stored[0];
	return result;
}

static void compare_pairs(struct pair *pairs, size_t count, long times)
{
	for (size_t i = 0; i < count; i++) {
		for (long n = 0; n < times; n++) {
			struct result again = called(pairs[i].again);
			struct result first = called(pairs[i].first);

			pairs[i].calls++;
			pairs[i].different += !!memcmp(&first, &again, sizeof(first));
		}
		printf("%s %lu %lu\n", pairs[i].name, pairs[i].calls, pairs[i].different);
	}
}

#define PAIR(name, body) { #name, name, name##_again, 0, 0 },
static struct pair avx[] = { EACH_AVX(PAIR) }, fma[] = { EACH_FMA(PAIR) },
		   bits[] = { EACH_BITS(PAIR) }, avx512[] = { EACH_AVX512(PAIR) };

int main(int argc, char **argv)
{
	long times = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	if (!__builtin_cpu_supports("avx"))
		return 77;
	compare_pairs(avx, sizeof(avx) / sizeof(*avx), times);
	if (__builtin_cpu_supports("fma"))
		compare_pairs(fma, sizeof(fma) / sizeof(*fma), times);
	if (__builtin_cpu_supports("bmi2"))
		compare_pairs(bits, sizeof(bits) / sizeof(*bits), times);
	if (__builtin_cpu_supports("avx512vl"))
		compare_pairs(avx512, sizeof(avx512) / sizeof(*avx512), times);
	return 0;
}
