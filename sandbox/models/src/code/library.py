# Textbook functions, each with what it does. Read by code.rs; a block ends with two empty lines.


def reverse_text(text: str) -> str:
    """The text with its characters in reverse order, backwards."""
    return text[::-1]


def factorial(n: int) -> int:
    """The factorial of n."""
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


def fibonacci(n: int) -> int:
    """The n-th Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def is_palindrome(text: str) -> bool:
    """Whether a text is a palindrome: reads the same forwards and backwards."""
    letters = [c.lower() for c in text if c.isalnum()]
    return letters == letters[::-1]


def is_prime(n):
    """Whether a number is a prime."""
    if n < 2:
        return False
    for i in range(2, int(n ** 0.5) + 1):
        if n % i == 0:
            return False
    return True


def primes(n):
    """All prime numbers up to n, by the sieve of Eratosthenes."""
    sieve = [True] * (n + 1)
    found = []
    for i in range(2, n + 1):
        if sieve[i]:
            found.append(i)
            for j in range(i * i, n + 1, i):
                sieve[j] = False
    return found


def gcd(a, b):
    """The greatest common divisor of two integers."""
    while b:
        a, b = b, a % b
    return a


def lcm(a, b):
    """The least common multiple of two integers."""
    x, y = a, b
    while y:
        x, y = y, x % y
    return a * b // x


def mean(xs):
    """The arithmetic mean, the average of a list of numbers."""
    return sum(xs) / len(xs)


def median(xs):
    """The median, the middle value of a list of numbers."""
    ordered = sorted(xs)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def mode(xs):
    """The most frequent, most common value of a list."""
    counts = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    return max(counts, key=counts.get)


def variance(xs):
    """The variance of a list of numbers."""
    mean = sum(xs) / len(xs)
    return sum((x - mean) ** 2 for x in xs) / len(xs)


def count_words(text):
    """How often each word of a text occurs, as a dictionary of counts."""
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def count_vowels(text):
    """The number of vowels in a text."""
    return sum(1 for c in text.lower() if c in 'aeiou')


def unique(xs):
    """The list without duplicates, each value once, in order."""
    seen = set()
    out = []
    for x in xs:
        if x not in seen:
            seen.add(x)
            out.append(x)
    return out


def flatten(xs):
    """A nested list of lists flattened into one list."""
    out = []
    for x in xs:
        if isinstance(x, list):
            out.extend(flatten(x))
        else:
            out.append(x)
    return out


def chunks(xs, size):
    """The list split into chunks, pieces of a given size."""
    return [xs[i:i + size] for i in range(0, len(xs), size)]


def merge_sorted(a, b):
    """Two sorted lists merged into one sorted list."""
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]


def binary_search(xs, x):
    """The index of a value in a sorted list by binary search, or -1 when it is not there."""
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        if xs[middle] == x:
            return middle
        if xs[middle] < x:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def bubble_sort(xs):
    """A list sorted in ascending order by bubble sort."""
    out = list(xs)
    for i in range(len(out)):
        for j in range(len(out) - 1 - i):
            if out[j] > out[j + 1]:
                out[j], out[j + 1] = out[j + 1], out[j]
    return out


def quicksort(xs):
    """A list sorted by quicksort."""
    if len(xs) < 2:
        return list(xs)
    pivot = xs[0]
    return quicksort([x for x in xs[1:] if x < pivot]) + [pivot] + quicksort([x for x in xs[1:] if x >= pivot])


def transpose(grid):
    """A matrix transposed: its rows as columns."""
    return [list(column) for column in zip(*grid)]


def rotate_matrix(grid):
    """A matrix or grid turned, rotated by 90 degrees clockwise."""
    return [list(row) for row in zip(*grid[::-1])]


def matrix_product(a, b):
    """The product of two matrices."""
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def run_length_encode(text):
    """Run-length encoding: runs of equal characters with their lengths."""
    out = []
    for c in text:
        if out and out[-1][0] == c:
            out[-1] = (c, out[-1][1] + 1)
        else:
            out.append((c, 1))
    return out


def caesar(text, shift):
    """A text encrypted with the Caesar cipher: letters shifted by a number of places."""
    out = []
    for c in text:
        if c.isalpha():
            base = ord('a') if c.islower() else ord('A')
            out.append(chr((ord(c) - base + shift) % 26 + base))
        else:
            out.append(c)
    return ''.join(out)


def is_anagram(a, b):
    """Whether two words or texts are anagrams: made of the same letters."""
    return sorted(a.replace(' ', '').lower()) == sorted(b.replace(' ', '').lower())


def hamming_distance(a, b):
    """The number of places in which two strings of equal length differ, the Hamming distance."""
    return sum(1 for x, y in zip(a, b) if x != y)


def edit_distance(a, b):
    """The Levenshtein edit distance of two strings: insertions, deletions and substitutions."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def is_balanced(text):
    """Whether brackets and parentheses in a text are balanced."""
    pairs = {')': '(', ']': '[', '}': '{'}
    stack = []
    for c in text:
        if c in '([{':
            stack.append(c)
        elif c in pairs:
            if not stack or stack.pop() != pairs[c]:
                return False
    return not stack


def to_roman(n):
    """A whole number as a Roman numeral."""
    numerals = [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'),
                (50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]
    out = ''
    for value, sign in numerals:
        while n >= value:
            out += sign
            n -= value
    return out


def to_binary(n):
    """A whole number as text in binary digits."""
    out = ''
    while n:
        out = str(n % 2) + out
        n //= 2
    return out or '0'


def digit_sum(n):
    """The sum of the decimal digits of a number."""
    return sum(int(d) for d in str(abs(n)))


def is_leap_year(year):
    """Whether a year is a leap year."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def celsius_to_fahrenheit(degrees):
    """A temperature in Celsius converted to Fahrenheit."""
    return degrees * 9 / 5 + 32


def second_largest(xs):
    """The second largest value of a list."""
    return sorted(set(xs))[-2]


def maximum(xs: list[float]) -> float | None:
    """The largest, greatest, maximum value of a list of numbers."""
    best = xs[0]
    for x in xs[1:]:
        if x > best:
            best = x
    return best


def sum_of_squares(xs):
    """The sum of the squares of the numbers in a list."""
    return sum(x * x for x in xs)


def cumulative_sum(xs):
    """The running, cumulative sums of a list of numbers."""
    out = []
    total = 0
    for x in xs:
        total += x
        out.append(total)
    return out


def title_case(text):
    """A text with the first letter of each word as a capital, title case."""
    return ' '.join(word[:1].upper() + word[1:].lower() for word in text.split())


def camel_to_snake(name):
    """A name in camel case converted to snake case."""
    out = ''
    for c in name:
        if c.isupper() and out:
            out += '_'
        out += c.lower()
    return out


def common_prefix(words):
    """The longest common prefix of a list of strings."""
    prefix = words[0] if words else ''
    for word in words:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


def group_by(xs, key):
    """The items of a list grouped by a key function, as a dictionary of lists."""
    groups = {}
    for x in xs:
        groups.setdefault(key(x), []).append(x)
    return groups


def invert(d):
    """A dictionary with its keys and values swapped, inverted."""
    return {value: key for key, value in d.items()}


def intersection(a, b):
    """The values that two lists have in common."""
    return [x for x in a if x in b]


def power(base, exponent):
    """A number raised to a power by repeated multiplication."""
    result = 1
    for _ in range(exponent):
        result *= base
    return result


def clamp(x, low, high):
    """A number limited, clamped to the range between low and high."""
    return max(low, min(x, high))


def sort(items: list) -> list:
    """The items sorted in ascending order."""
    return sorted(items)


def total(numbers: list[int]) -> int:
    """The sum, the total of all numbers added."""
    return sum(numbers)
