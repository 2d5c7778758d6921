/* runtime/ops/special_math.c - special functions that the C library lacks.
 *
 * digamma and the Hurwitz zeta function after Cephes (S. Moshier), erfinv after M. Giles,
 * "Approximating the erfinv function", with Newton steps to double precision. */
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
    static const double a[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0,
                               -1.8924375803183791606e9, 7.47242496e10,
                               -2.950130727918164224e12, 1.1646782814350067249e14,
                               -4.5979787224074726105e15, 1.8152105401943546773e17,
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

double rt_polygamma(int64_t n, double x) {
    if (n == 0)
        return rt_digamma(x);
    if (n == 1 && x < 0.5) { /* reflection of the trigamma function */
        double sine = sin(PI * x);
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
        static const double c[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06,
                                   -4.39150654e-06, 0.00021858087, -0.00125372503,
                                   -0.00417768164, 0.246640727, 1.50140941};
        w -= 2.5;
        y = c[0];
        for (int i = 1; i < 9; i++)
            y = c[i] + y * w;
    } else {
        static const double c[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                   -0.00367342844, 0.00573950773, -0.0076224613,
                                   0.00943887047, 1.00167406, 2.83297682};
        w = sqrt(w) - 3;
        y = c[0];
        for (int i = 1; i < 9; i++)
            y = c[i] + y * w;
    }
    y *= x;
    const double half_root_pi = 0.88622692545275801365;
    for (int i = 0; i < 2; i++) { /* from 1e-7 to rounding; erfc keeps what 1 - x holds */
        double error = fabs(x) < 0.5 ? erf(y) - x
                       : x > 0       ? (1 - x) - erfc(y)
                                     : erfc(-y) - (1 + x);
        if (x >= 0.5)
            error = (1 - x) - erfc(y);
        double step = error * half_root_pi * exp(y * y);
        y -= step;
    }
    return y;
}
