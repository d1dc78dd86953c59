/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_LOCALE_H
#define WEFT_BASE_LOCALE_H

/*
 * The "C" locale, for reading and writing numbers: the program that embeds weft may have chosen one
 * with a decimal comma.
 */

#include <locale.h>

locale_t weft_c_locale(void);

#endif
