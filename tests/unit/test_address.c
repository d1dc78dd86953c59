/* SPDX-License-Identifier: Apache-2.0 */

/* Which addresses a call may reach, and hosts that are addresses in disguise. */

#include "core/address.h"
#include "tap.h"

#include <arpa/inet.h>

struct judged {
    const char *text, *what; /* NULL: public */
};

/* clang-format off */
/* Both ends of each range, and its neighbours where they are public. */
static const struct judged table[] = {
    {"0.0.0.0", "unspecified"}, {"0.0.0.1", "this network"}, {"0.255.255.255", "this network"},
    {"1.0.0.0", NULL}, {"1.1.1.1", NULL}, {"8.8.8.8", NULL}, {"9.255.255.255", NULL},
    {"10.0.0.0", "private"}, {"10.255.255.255", "private"}, {"11.0.0.0", NULL},
    {"100.63.255.255", NULL}, {"100.64.0.0", "carrier NAT"}, {"100.100.100.200", "carrier NAT"},
    {"100.127.255.255", "carrier NAT"}, {"100.128.0.0", NULL},
    {"126.255.255.255", NULL}, {"127.0.0.0", "loopback"}, {"127.0.0.1", "loopback"},
    {"127.255.255.255", "loopback"}, {"128.0.0.0", NULL},
    {"168.63.129.15", NULL}, {"168.63.129.16", "metadata"}, {"168.63.129.17", NULL},
    {"169.253.255.255", NULL}, {"169.254.0.0", "link-local"}, {"169.254.169.254", "link-local"},
    {"169.254.255.255", "link-local"}, {"169.255.0.0", NULL},
    {"172.15.255.255", NULL}, {"172.16.0.0", "private"}, {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL}, {"192.0.0.0", "reserved"}, {"192.0.0.192", "reserved"},
    {"192.0.0.255", "reserved"}, {"192.0.1.0", NULL}, {"192.0.2.0", "documentation"},
    {"192.0.2.255", "documentation"}, {"192.0.3.0", NULL},
    {"192.88.98.255", NULL}, {"192.88.99.1", "6to4"}, {"192.88.100.0", NULL},
    {"192.167.255.255", NULL}, {"192.168.0.0", "private"}, {"192.168.255.255", "private"},
    {"192.169.0.0", NULL},
    {"198.17.255.255", NULL}, {"198.18.0.0", "benchmark"}, {"198.19.255.255", "benchmark"},
    {"198.20.0.0", NULL}, {"198.51.100.7", "documentation"}, {"198.51.101.0", NULL},
    {"203.0.112.255", NULL}, {"203.0.113.9", "documentation"}, {"203.0.114.0", NULL},
    {"223.255.255.255", NULL}, {"224.0.0.0", "multicast"}, {"239.255.255.255", "multicast"},
    {"240.0.0.0", "reserved"}, {"255.255.255.254", "reserved"}, {"255.255.255.255", "broadcast"},

    {"::", "unspecified"}, {"::1", "loopback"}, {"::2", "IPv4-compatible"},
    {"::127.0.0.1", "IPv4-compatible"}, {"::8.8.8.8", "IPv4-compatible"},
    {"::fffe:0:0", "reserved"}, {"::ffff:0:0", "IPv4-mapped"}, {"::ffff:127.0.0.1", "IPv4-mapped"},
    {"::ffff:8.8.8.8", "IPv4-mapped"}, {"::ffff:0:8.8.8.8", "IPv4-translated"},
    {"64:ff9b::", "NAT64"}, {"64:ff9b::7f00:1", "NAT64"}, {"64:ff9b::8.8.8.8", "NAT64"},
    {"64:ff9b:0:1::", "reserved"}, {"64:ff9b:1::", "NAT64"}, {"64:ff9b:1:ffff::1", "NAT64"},
    {"64:ff9b:2::", "reserved"}, {"100::", "discard"}, {"100::1", "discard"},
    {"100:0:0:1::1", "reserved"}, {"1fff:ffff::", "reserved"},
    {"2000::", NULL}, {"2001::", "Teredo"}, {"2001:0:7f00:1::", "Teredo"},
    {"2001:1::1", "reserved"},
    {"2001:2::1", "benchmark"}, {"2001:2:1::", "reserved"}, {"2001:10::", "ORCHID"},
    {"2001:1f:ffff::", "ORCHID"}, {"2001:20::1", "ORCHID"}, {"2001:2f::1", "ORCHID"},
    {"2001:30::1", "reserved"}, {"2001:1ff:ffff::", "reserved"}, {"2001:200::", NULL},
    {"2001:4860:4860::8888", NULL}, {"2001:db7:ffff::", NULL}, {"2001:db8::1", "documentation"},
    {"2001:db8:ffff::", "documentation"}, {"2001:db9::", NULL}, {"2002::", "6to4"},
    {"2002:7f00:1::1", "6to4"}, {"2003::1", NULL}, {"2606:4700:4700::1111", NULL},
    {"3ffe:ffff::", NULL}, {"3fff::1", "documentation"}, {"3fff:fff::", "documentation"},
    {"3fff:1000::", NULL}, {"4000::", "reserved"}, {"5f00::1", "reserved"},
    {"fbff:ffff::", "reserved"}, {"fc00::", "private"}, {"fd00:ec2::254", "private"},
    {"fdff:ffff::", "private"}, {"fe00::", "reserved"}, {"fe7f::", "reserved"},
    {"fe80::1", "link-local"}, {"febf:ffff::", "link-local"}, {"fec0::1", "site-local"},
    {"feff:ffff::", "site-local"}, {"ff00::", "multicast"}, {"ff02::1", "multicast"},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"},
};

struct host {
    const char *text, *address; /* "" bad; NULL: a name */
};

static const struct host hosts[] = {
    {"127.0.0.1", "127.0.0.1"}, {"127.0.0.1.", "127.0.0.1"}, {"127.1", "127.0.0.1"},
    {"127.0.1", "127.0.0.1"}, {"2130706433", "127.0.0.1"}, {"0x7f000001", "127.0.0.1"},
    {"0X7F.1", "127.0.0.1"}, {"017700000001", "127.0.0.1"}, {"0177.0.0.01", "127.0.0.1"},
    {"0x7f.0x0.0x0.0x1", "127.0.0.1"}, {"127.0.0.00000001", "127.0.0.1"},
    {"0", "0.0.0.0"}, {"0.", "0.0.0.0"}, {"00", "0.0.0.0"}, {"4294967295", "255.255.255.255"},
    {"1.16777215", "1.255.255.255"}, {"1.2.65535", "1.2.255.255"},
    {"255.255.255.255", "255.255.255.255"},
    {"010.8.8.8", "8.8.8.8"}, {"0xa9fea9fe", "169.254.169.254"},
    {"4294967296", ""}, {"1.16777216", ""}, {"1.2.65536", ""}, {"1.2.3.256", ""}, {"256.1", ""},
    {"1.2.3.4.5", ""}, {"08.1.1.1", ""}, {"1.1.1.09", ""}, {"0x", ""}, {"1.0x", ""},
    {"0x1g.1", ""}, {"1..1", ""}, {".1", ""}, {"example.1", ""}, {"99999999999999999999999", ""},
    {"0x10000000000000001", ""}, {"-1.1", ""},
    {"example.com", NULL}, {"localhost", NULL}, {"1.2.3.4x", NULL}, {"1.2.3.0xg", NULL},
    {"127.0.0.1..", NULL}, {"", NULL}, {".", NULL}, {"deadbeef", NULL}, {"1.2.3.f", NULL},
    {"127.0.0.1.nip.io", NULL}, {"1e1", NULL},
};
/* clang-format on */

static struct weft_address parse(const char *text)
{
    struct weft_address address = {.size = strchr(text, ':') ? 16 : 4};
    ok(inet_pton(address.size == 4 ? AF_INET : AF_INET6, text, address.byte) == 1,
       "%s is an address", text);
    return address;
}

static void test_ranges(void)
{
    for (size_t i = 0; i < WEFT_LEN(table); i++) {
        struct weft_address address = parse(table[i].text);
        is_str(weft_address_refused(&address), table[i].what, "what %s is", table[i].text);
    }
    is_str(weft_address_refused(&(struct weft_address){0}), "no IP address",
           "an address of another family is refused");
}

static void test_hosts(void)
{
    for (size_t i = 0; i < WEFT_LEN(hosts); i++) {
        const char *want = hosts[i].address;
        char got[WEFT_ADDRESS_TEXT] = "";
        struct weft_address address = {0};
        enum weft_host kind = weft_host_read(hosts[i].text, strlen(hosts[i].text), &address);
        if (kind == WEFT_HOST_ADDRESS)
            weft_address_print(&address, got);
        is_str(kind == WEFT_HOST_NAME ? NULL : got, want, "host '%s'", hosts[i].text);
        is_int(address.size, want && *want ? 4 : 0, "host '%s': size of the address",
               hosts[i].text);
    }
    struct weft_address address;
    is_int(weft_host_read("127.0.0.1/8", 9, &address), WEFT_HOST_ADDRESS,
           "no more than `size` bytes are read");
}

static void test_v6(void)
{
    static const struct host row[] = {
        {"::1", "::1"},
        {"0:0:0:0:0:0:0:1", "::1"},
        {"::ffff:127.0.0.1", "::ffff:127.0.0.1"},
        {"FE80::1", "fe80::1"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
        {"", ""},
        {"1.2.3.4", ""},
        {"::1%lo", ""},
        {"[::1]", ""},
        {"::1::", ""},
        {"12345::", ""},
        {"0000000000000000000000000000000000000000000000000000000000::1", ""},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char got[WEFT_ADDRESS_TEXT] = "";
        struct weft_address address;
        if (weft_address_v6(row[i].text, strlen(row[i].text), &address))
            weft_address_print(&address, got);
        is_str(got, row[i].address, "IPv6 '%s'", row[i].text);
    }
    struct weft_address address;
    ok(!weft_address_v6("::1\0::", 6, &address), "a NUL does not end an address");
}

int main(void)
{
    test_ranges();
    test_hosts();
    test_v6();
    return tap_done();
}
