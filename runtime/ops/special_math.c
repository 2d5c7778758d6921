/* runtime/ops/special_math.c - special functions that the C library lacks.
 *
 * digamma and the Hurwitz zeta function after Cephes (S. Moshier), erfinv after M. Giles,
 * "Approximating the erfinv function", with Newton steps to double precision; modified Bessel
 * functions by power and asymptotic series (Abramowitz and Stegun 9.6.10, 9.7.1) and Steed's
 * continued fraction (Numerical Recipes, bessik); incomplete gamma by series and Lentz's fraction.
 */
#define _XOPEN_SOURCE 700 /* j0, j1, y0, y1 */
#include <math.h>

#include "runtime/ops/pointwise.h"

#define PI 3.14159265358979323846

double rt_digamma(double x) {
    if (x == 0)
        return copysign((double)INFINITY, -x);
    double shift = 0;
    if (x < 0) {
        if (x == floor(x))
            return (double)NAN;
        double whole;
        shift = -PI / tan(PI * modf(x, &whole)); /* reflection */
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        shift -= 1 / x;
    if (x == 10)
        return shift + 2.25175258906672110764;
    double y = 0;
    if (x < 1e17) {
        static const double a[] = {8.33333333333333333333e-2, -2.10927960927960927961e-2,
                                   7.57575757575757575758e-3, -4.16666666666666666667e-3,
                                   3.96825396825396825397e-3, -8.33333333333333333333e-3,
                                   8.33333333333333333333e-2};
        double z = 1 / (x * x);
        for (int i = 0; i < 7; i++)
            y = y * z + a[i];
        y *= z;
    }
    return shift + log(x) - 0.5 / x - y;
}

double rt_zeta(double x, double q) {
    static const double a[] = {12.0,
                               -720.0,
                               30240.0,
                               -1209600.0,
                               47900160.0,
                               -1.8924375803183791606e9,
                               7.47242496e10,
                               -2.950130727918164224e12,
                               1.1646782814350067249e14,
                               -4.5979787224074726105e15,
                               1.8152105401943546773e17,
                               -7.1661652561756670113e18};
    if (x == 1)
        return (double)INFINITY;
    if (x < 1)
        return (double)NAN;
    if (q <= 0) {
        if (q == floor(q))
            return (double)INFINITY;
        if (x != floor(x))
            return (double)NAN;
    }
    const double tiny = 0x1p-53;
    double sum = pow(q, -x), at = q, term = 0;
    for (int i = 0; i < 9 || at <= 9; i++) {
        at += 1;
        term = pow(at, -x);
        sum += term;
        if (-tiny * sum < term && term < tiny * sum)
            return sum;
    }
    sum += term * at / (x - 1) - 0.5 * term;
    double factor = 1, k = 0;
    for (int i = 0; i < 12; i++) {
        factor *= x + k;
        term /= at;
        double step = factor * term / a[i];
        sum += step;
        if (fabs(step / sum) < tiny)
            return sum;
        k += 1;
        factor *= x + k;
        term /= at;
        k += 1;
    }
    return sum;
}

double rt_polygamma(int64_t n, double x, bool is_double) {
    if (n == 0)
        return rt_digamma(x);
    if (n == 1 && x < 0.5) { /* reflection of the trigamma function; at its poles the rounding of pi * x decides */
        double sine = sin(is_double ? PI * x : (double)(3.14159265f * (float)x));
        return PI * PI / (sine * sine) - rt_zeta(2, 1 - x);
    }
    double order = (double)n + 1;
    return (n % 2 ? 1.0 : -1.0) * exp(lgamma(order)) * rt_zeta(order, x);
}

double rt_erfinv(double x) {
    if (x != x || fabs(x) > 1)
        return (double)NAN;
    if (fabs(x) == 1)
        return copysign((double)INFINITY, x);
    double w = -log((1 - x) * (1 + x)), y;
    if (w < 5) {
        static const double c[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                   -0.00417768164,  0.246640727,    1.50140941};
        w -= 2.5;
        y = c[0];
        for (int i = 1; i < 9; i++)
            y = c[i] + y * w;
    } else {
        static const double c[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                   -0.00367342844,  0.00573950773,  -0.0076224613,
                                   0.00943887047,   1.00167406,     2.83297682};
        w = sqrt(w) - 3;
        y = c[0];
        for (int i = 1; i < 9; i++)
            y = c[i] + y * w;
    }
    y *= x;
    const double half_root_pi = 0.88622692545275801365;
    for (int i = 0; i < 2; i++) { /* from 1e-7 to rounding; erfc keeps what 1 - x holds */
        double error = fabs(x) < 0.5 ? erf(y) - x : x > 0 ? (1 - x) - erfc(y) : erfc(-y) - (1 + x);
        if (x >= 0.5)
            error = (1 - x) - erfc(y);
        double step = error * half_root_pi * exp(y * y);
        y -= step;
    }
    return y;
}

/* ---- Bessel functions ---- */

#define EULER 0.57721566490153286061

/* exp(-|x|) I_order(x), order 0 or 1, x >= 0 */
static double bessel_i_scaled(int order, double x) {
    if (x < 30) { /* all terms are positive: no digits are lost */
        double q = x * x / 4, term = order ? x / 2 : 1, sum = term;
        for (int k = 1; k < 200 && term > sum * 0x1p-54; k++) {
            term *= q / ((double)k * (double)(k + order));
            sum += term;
        }
        return sum * exp(-x);
    }
    double mu = order ? 4 : 0, term = 1, sum = 1;
    for (int k = 1; k < 40; k++) {
        double odd = 2.0 * k - 1;
        term *= -(mu - odd * odd) / ((double)k * 8 * x);
        sum += term;
        if (fabs(term) < 0x1p-54)
            break;
    }
    return sum / sqrt(2 * PI * x);
}

double rt_bessel_i0e(double x) { return bessel_i_scaled(0, fabs(x)); }
double rt_bessel_i1e(double x) { return x != x ? x : copysign(bessel_i_scaled(1, fabs(x)), x); }
double rt_bessel_i0(double x) { return bessel_i_scaled(0, fabs(x)) * exp(fabs(x)); }
double rt_bessel_i1(double x) { return rt_bessel_i1e(x) * exp(fabs(x)); }

/* exp(x) K_mu(x) and exp(x) K_(mu+1)(x) for x >= 2, |mu| <= 1/2 */
static void bessel_k_fraction(double mu, double x, double *k_mu, double *k_next) {
    double b = 2 * (1 + x), d = 1 / b, h = d, step = d, q1 = 0, q2 = 1;
    double a1 = 0.25 - mu * mu, q = a1, c = a1, a = -a1, s = 1 + q * step;
    for (int i = 2; i < 10000; i++) {
        a -= 2 * (i - 1);
        c = -a * c / i;
        double next = (q1 - b * q2) / a;
        q1 = q2;
        q2 = next;
        q += c * next;
        b += 2;
        d = 1 / (b + a * d);
        step = (b * d - 1) * step;
        h += step;
        double change = q * step;
        s += change;
        if (fabs(change / s) < 0x1p-54)
            break;
    }
    h *= a1;
    *k_mu = sqrt(PI / (2 * x)) / s;
    *k_next = *k_mu * (mu + x + 0.5 - h) / x;
}

/* exp(x) K_order(x), order 0 or 1 */
double rt_bessel_ke(int64_t order, double x) {
    if (!(x > 0))
        return x == 0 ? (double)INFINITY : (double)NAN;
    if (x == (double)INFINITY)
        return 0;
    double k0, k1;
    if (x >= 2) {
        bessel_k_fraction(0, x, &k0, &k1);
        return order ? k1 : k0;
    }
    double q = x * x / 4, term = 1, harmonic = 0, sum = 0, log_half = log(x / 2);
    if (order == 0) {
        for (int k = 1; k < 40; k++) {
            term *= q / ((double)k * k);
            harmonic += 1.0 / k;
            sum += term * harmonic;
        }
        return (sum - (log_half + EULER) * rt_bessel_i0(x)) * exp(x);
    }
    for (int k = 0; k < 40; k++) { /* psi(k + 1) + psi(k + 2) */
        if (k > 0) {
            term *= q / ((double)k * (k + 1));
            harmonic += 1.0 / k;
        }
        sum += term * (2 * (harmonic - EULER) + 1.0 / (k + 1));
    }
    return (1 / x + log_half * rt_bessel_i1(x) - x / 4 * sum) * exp(x);
}

double rt_bessel_k(int64_t order, double x) { return rt_bessel_ke(order, x) * exp(-x); }

double rt_bessel_j(int64_t order, double x) {
    if (fabs(x) == (double)INFINITY)
        return (double)NAN; /* PyTorch's answer, as for y */
    return order ? j1(x) : j0(x);
}
double rt_bessel_y(int64_t order, double x) {
    if (x == 0)
        return -(double)INFINITY;
    return x < 0 || x == (double)INFINITY ? (double)NAN : order ? y1(x) : y0(x);
}

double rt_spherical_j0(double x) {
    if (fabs(x) == (double)INFINITY)
        return 0;
    if (fabs(x) < 0.5) {
        double q = x * x, term = 1, sum = 1;
        for (int k = 1; k < 12; k++) {
            term *= -q / ((double)(2 * k) * (2 * k + 1));
            sum += term;
        }
        return sum;
    }
    return sin(x) / x;
}

/* Airy's Ai: Maclaurin series, K_(1/3) for large x, asymptotic series for large -x (10.4.60) */
double rt_airy_ai(double x) {
    if (x != x)
        return x;
    if (fabs(x) == (double)INFINITY)
        return (double)NAN; /* PyTorch's answer */
    if (x > 2.5) {
        double zeta = 2.0 / 3 * x * sqrt(x), k, next;
        bessel_k_fraction(1.0 / 3, zeta, &k, &next);
        return sqrt(x / 3) / PI * k * exp(-zeta);
    }
    if (x >= -9) {
        double cube = x * x * x, f = 1, g = x, f_sum = 1, g_sum = x;
        for (int k = 1; k < 100; k++) {
            f *= cube / ((3.0 * k - 1) * (3.0 * k));
            g *= cube / ((3.0 * k) * (3.0 * k + 1));
            f_sum += f;
            g_sum += g;
            if (fabs(f) + fabs(g) < 1e-20)
                break;
        }
        return 0.35502805388781723926 * f_sum - 0.25881940379280679840 * g_sum;
    }
    double z = -x, zeta = 2.0 / 3 * z * sqrt(z), term = 1, even = 1, odd = 0;
    for (int k = 1; k < 16; k++) {
        term *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1) * zeta);
        double sign = k / 2 % 2 ? -1 : 1;
        if (k % 2)
            odd += sign * term;
        else
            even += sign * term;
    }
    return (sin(zeta + PI / 4) * even - cos(zeta + PI / 4) * odd) / (sqrt(PI) * sqrt(sqrt(z)));
}

/* ---- normal distribution and error functions ---- */

double rt_erfcx(double x) {
    if (x < 10)
        return x < -26.7 ? (double)INFINITY : exp(x * x) * erfc(x);
    double q = 1 / (2 * x * x), term = 1, sum = 1; /* 7.1.23 */
    for (int k = 1; k < 20; k++) {
        term *= -(2.0 * k - 1) * q;
        if (fabs(term) < 0x1p-54)
            break;
        sum += term;
    }
    return sum / (x * 1.77245385090551602730);
}

double rt_ndtri(double p) {
    if (p != p || p < 0 || p > 1)
        return (double)NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -(double)INFINITY : (double)INFINITY;
    if (p == 0.5)
        return 0;
    double tail = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(tail));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))); /* 26.2.23 */
    for (int i = 0; i < 3; i++) { /* Halley on the upper tail */
        double error = 0.5 * erfc(x * 0.70710678118654752440) - tail;
        double u = -error * 2.50662827463100050242 * exp(x * x / 2);
        x -= u / (1 + x * u / 2);
    }
    return p < 0.5 ? -x : x;
}

/* ---- incomplete gamma ---- */

/* The regularised lower (or upper) function of a > 0, x >= 0. */
double rt_igamma(double a, double x, bool is_upper) {
    const double inf = (double)INFINITY;
    /* the order of calc_igamma's tests decides what a NaN beside an infinity gives */
    if (a < 0 || x < 0 || (a == 0 && !(x > 0)))
        return (double)NAN;
    if (a == 0)
        return is_upper ? 0 : 1;
    if (x == 0)
        return is_upper ? 1 : 0;
    if (a == inf)
        return x == inf ? (double)NAN : is_upper ? 1 : 0;
    if (x == inf)
        return is_upper ? 0 : 1;
    if (a != a || x != x)
        return (double)NAN;
    double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < 100000 && term > sum * 0x1p-54; n++) {
            term *= x / (a + n);
            sum += term;
        }
        return is_upper ? 1 - front * sum : front * sum;
    }
    double tiny = 1e-300, b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int i = 1; i < 100000; i++) {
        double an = -i * (i - a);
        b += 2;
        d = an * d + b;
        d = fabs(d) < tiny ? tiny : d;
        c = b + an / c;
        c = fabs(c) < tiny ? tiny : c;
        d = 1 / d;
        double change = d * c;
        h *= change;
        if (fabs(change - 1) < 0x1p-53)
            break;
    }
    return is_upper ? front * h : 1 - front * h;
}
