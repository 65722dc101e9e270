/* fmath.h: elementary functions with the same bits on every machine.
 *
 * Whatever decides a sample's bytes uses these instead of libm, whose last bit differs from version to version.
 * Plain double arithmetic in a fixed order (the build forbids contraction); errors are below 2 ulp in the ranges
 * that ops use, which tests/unit/base checks against libm.  sqrt is correctly rounded by IEEE 754 and used as it is.
 */
#ifndef DR_BASE_FMATH_H
#define DR_BASE_FMATH_H

double dr__exp(double x);
double dr__log(double x); /* x > 0 */
double dr__sin(double x); /* |x| < 1e5 */
double dr__cos(double x);
double dr__tan(double x);
double dr__pow(double x, double y); /* x >= 0 */
double dr__round_even(double x);    /* Python's round(): halves to even */

#define DR_PI 3.14159265358979323846

#endif
