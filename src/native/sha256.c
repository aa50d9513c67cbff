/* SHA-256, by the processor's own instructions where it has them. */
#include "native.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define HAS_SHA_INSTRUCTIONS 1
#endif

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t turned(uint32_t word, int bits)
{
    return (word >> bits) | (word << (32 - bits));
}

static void hash_blocks_plainly(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += 64) {
        uint32_t word[64], at[8];
        for (int n = 0; n < 16; n++)
            word[n] = (uint32_t)data[4 * n] << 24 | (uint32_t)data[4 * n + 1] << 16 |
                      (uint32_t)data[4 * n + 2] << 8 | data[4 * n + 3];
        for (int n = 16; n < 64; n++) {
            uint32_t low = word[n - 15], high = word[n - 2];
            word[n] = word[n - 16] + word[n - 7] + (turned(low, 7) ^ turned(low, 18) ^ (low >> 3)) +
                      (turned(high, 17) ^ turned(high, 19) ^ (high >> 10));
        }
        memcpy(at, state, sizeof at);
        for (int n = 0; n < 64; n++) {
            uint32_t chosen = (at[4] & at[5]) ^ (~at[4] & at[6]);
            uint32_t most = (at[0] & at[1]) ^ (at[0] & at[2]) ^ (at[1] & at[2]);
            uint32_t one = at[7] + (turned(at[4], 6) ^ turned(at[4], 11) ^ turned(at[4], 25)) +
                           chosen + ROUND[n] + word[n];
            uint32_t two = (turned(at[0], 2) ^ turned(at[0], 13) ^ turned(at[0], 22)) + most;
            memmove(at + 1, at, 7 * sizeof *at);
            at[4] += one;
            at[0] = one + two;
        }
        for (int n = 0; n < 8; n++)
            state[n] += at[n];
    }
}

#ifdef HAS_SHA_INSTRUCTIONS
__attribute__((target("sha,sse4.1,ssse3"))) static void
hash_blocks_quickly(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    /* The instructions want the eight words as ABEF and CDGH. */
    __m128i dcba = _mm_loadu_si128((const __m128i *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1), efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; blocks > 0; blocks--, data += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh, word[4];
        for (int n = 0; n < 4; n++) {
            __m128i raw = _mm_loadu_si128((const __m128i *)(data + 16 * n));
            word[n] = _mm_shuffle_epi8(raw, big_endian);
        }
#pragma GCC unroll 16
        for (int n = 0; n < 16; n++) {
            __m128i key = _mm_loadu_si128((const __m128i *)(ROUND + 4 * n));
            __m128i sum = _mm_add_epi32(word[n & 3], key);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
            if (n < 12) {
                __m128i last = word[(n + 3) & 3];
                __m128i seven = _mm_alignr_epi8(last, word[(n + 2) & 3], 4);
                __m128i next = _mm_sha256msg1_epu32(word[n & 3], word[(n + 1) & 3]);
                word[n & 3] = _mm_sha256msg2_epu32(_mm_add_epi32(next, seven), last);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static bool has_sha_instructions(void)
{
    unsigned int a, b, c, d;
    bool has_sse = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1);
    return has_sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}
#endif

static void (*hash_blocks)(uint32_t[8], const uint8_t *, size_t) = hash_blocks_plainly;

void sha256_ready(void)
{
#ifdef HAS_SHA_INSTRUCTIONS
    if (has_sha_instructions())
        hash_blocks = hash_blocks_quickly;
#endif
}

void sha256_begin(Sha256 *hash)
{
    static const uint32_t FIRST[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memcpy(hash->state, FIRST, sizeof FIRST);
    hash->length = 0;
}

void sha256_add(Sha256 *hash, const void *data, size_t length)
{
    const uint8_t *from = data;
    size_t held = hash->length & 63;
    hash->length += length;
    if (held > 0) {
        size_t taken = length < 64 - held ? length : 64 - held;
        memcpy(hash->block + held, from, taken);
        from += taken;
        length -= taken;
        if (held + taken < 64)
            return;
        hash_blocks(hash->state, hash->block, 1);
    }
    if (length >= 64) {
        hash_blocks(hash->state, from, length / 64);
        from += length & ~(size_t)63;
        length &= 63;
    }
    memcpy(hash->block, from, length);
}

void sha256_end(Sha256 *hash, uint8_t digest[SHA256_BYTES])
{
    uint64_t bits = hash->length * 8;
    uint8_t tail[72] = {0x80};
    size_t held = hash->length & 63;
    size_t padding = (held < 56 ? 56 : 120) - held;
    for (int n = 0; n < 8; n++)
        tail[padding + (size_t)n] = (uint8_t)(bits >> (56 - 8 * n));
    sha256_add(hash, tail, padding + 8);
    for (int n = 0; n < 8; n++)
        for (int byte = 0; byte < 4; byte++)
            digest[4 * n + byte] = (uint8_t)(hash->state[n] >> (24 - 8 * byte));
}
