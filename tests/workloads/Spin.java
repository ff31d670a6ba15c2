// SPDX-License-Identifier: Apache-2.0
/** Prints `ready` when its loop is compiled, then computes and sorts for args[0] seconds. */
public class Spin {
	private static long mix(long x) {
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005L + i;
		return x;
	}

	private static long sortSome(long x) {
		long[] items = new long[2000];

		for (int i = 0; i < items.length; i++)
			items[i] = x = x * 6364136223846793005L + i;
		java.util.Arrays.sort(items);
		return items[0];
	}

	public static void main(String[] args) {
		long x = 1;

		for (int i = 0; i < 3000; i++)
			x = sortSome(mix(x));
		System.out.println("ready");
		for (long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
				System.nanoTime() < end;)
			x = sortSome(mix(x));
		if (x == 0)
			System.out.println(x);
	}
}
