/* SPDX-License-Identifier: Apache-2.0 */

#include "core/batch_pace.h"

#define LOOK_MIN_US ((weft_usec)10 * WEFT_SECOND)
#define LOOK_MAX_US ((weft_usec)1800 * WEFT_SECOND)
#define LAST_US     ((weft_usec)600 * WEFT_SECOND)
#define LOOKS_OF_ALL                                                                               \
    50 /* a look is due when so small a part of the time that is left has passed                   \
        */

/* The aim is to begin the last line when four fifths of the time that is left have passed. */
static double aim_us(const struct weft_batch_pace *pace)
{
    return (double)pace->left_us * 4 / 5;
}

uint32_t weft_batch_pace_raise(const struct weft_batch_pace *pace)
{
    if (pace->since_us <= 0 || pace->waiting <= pace->raised)
        return 0;
    if (pace->left_us <= 0)
        return 0; /* they expire in this moment */
    double fast = (double)pace->ended / (double)pace->since_us;
    if (fast * aim_us(pace) >= (double)pace->waiting)
        return 0; /* it ends in time as it is */
    double part = (double)pace->next_us / aim_us(pace);
    double wanted = part >= 1 ? (double)pace->waiting : (double)pace->waiting * part;
    uint64_t lines = (uint64_t)wanted;
    lines += (double)lines < wanted;
    if (lines <= pace->raised)
        return 0; /* what the looks before it have put first has not begun yet */
    lines -= pace->raised;
    return lines < WEFT_BATCH_PIECE_MAX ? (uint32_t)lines : WEFT_BATCH_PIECE_MAX;
}

/* The last tenth of the window, but at least its last ten minutes; of a short one, the last half.
 */
static weft_usec last_part_us(weft_usec window_us)
{
    weft_usec last_us = window_us / 10 > LAST_US ? window_us / 10 : LAST_US;
    return last_us < window_us / 2 ? last_us : window_us / 2;
}

bool weft_batch_escalates(weft_usec window_us, weft_usec left_us)
{
    return left_us > 0 && left_us <= last_part_us(window_us);
}

weft_usec weft_batch_look_in(weft_usec window_us, weft_usec left_us)
{
    weft_usec next_us = left_us / LOOKS_OF_ALL, last_us = left_us - last_part_us(window_us);
    if (next_us < LOOK_MIN_US)
        next_us = LOOK_MIN_US;
    if (next_us > LOOK_MAX_US)
        next_us = LOOK_MAX_US;
    return last_us > 0 && last_us < next_us ? last_us : next_us; /* in time for the last part */
}
