/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft endpoint: the servers that weft calls itself. Settings are replaced as a whole: what the
 * command line does not name is read first and put back.
 */

#include "cmd/admin/endpoint_show.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/text.h"
#include "core/endpoint.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Options --------------------------------------------------------------------------------- */

/* Settings that are one value, by the name of their option and of --default. */
enum form { TEXT, NUMBER, DURATION, SIZE, SWITCH };
static const struct setting {
    const char *option;
    enum form form;
    size_t at;
    int64_t max;
} settings[] = {
#define AT(member) offsetof(struct weft_endpoint, member)
    {"url", TEXT, AT(url), 0},
    {"secret", TEXT, AT(secret), 0},
    {"auth", TEXT, AT(auth), 0},
    {"idempotency-header", TEXT, AT(idempotency_header), 0},
    {"private", SWITCH, AT(private_addresses), 0},
    {"redirects", SWITCH, AT(redirects), 0},
    {"idempotent", SWITCH, AT(idempotent), 0},
    {"retry", TEXT, AT(retry), 0}, /* written as JSON by read_retry() */
    {"retry-after-max", DURATION, AT(retry_after_max_ms),
     WEFT_HTTP_RETRY_AFTER_MAX_S *INT64_C(1000)},
    {"max-in-flight", NUMBER, AT(max_in_flight), WEFT_ENDPOINT_IN_FLIGHT_MAX},
    {"connect", DURATION, AT(connect_ms), WEFT_ENDPOINT_MS_MAX},
    {"first-byte", DURATION, AT(first_byte_ms), WEFT_ENDPOINT_MS_MAX},
    {"idle", DURATION, AT(idle_ms), WEFT_ENDPOINT_MS_MAX},
    {"total", DURATION, AT(total_ms), WEFT_ENDPOINT_MS_MAX},
    {"response-max", SIZE, AT(response_max), WEFT_ENDPOINT_RESPONSE_MAX},
#undef AT
};

/* "408,429,5xx" as JSON; "none": an empty list. Whether they are statuses is for the rules to say.
 */
static const char *read_retry(const struct weft_cli *cli, const char *list)
{
    const char *json = "", *comma = "";
    if (strcmp(list, "none") == 0)
        return "[]";
    char *rest = weft_arena_strdup(cli->arena, list);
    for (const char *word; (word = strsep(&rest, ",")); comma = ",") {
        int64_t number;
        if (!weft_number_typed(word, &number) && !weft_is_word(word, "3xx 4xx 5xx"))
            weft_cli_usage(cli, "--retry is '%s': it must be statuses like 408,429,5xx, or none",
                           list);
        const char *quote = strchr(word, 'x') ? "\"" : "";
        json = weft_arena_printf(cli->arena, "%s%s%s%s%s", json, comma, quote, word, quote);
    }
    return weft_arena_printf(cli->arena, "[%s]", json);
}

static bool read_switch(const struct weft_cli *cli, const char *option)
{
    const char *value = weft_cli_get(cli, option);
    if (value && !weft_is_word(value, "yes no"))
        weft_cli_usage(cli, "--%s is '%s': it must be yes or no", option, value);
    return !value || strcmp(value, "yes") == 0;
}

static int64_t read_size(const struct weft_cli *cli, const struct setting *setting)
{
    const char *value = weft_cli_get(cli, setting->option);
    int64_t bytes;
    if (!weft_size_typed(value, &bytes) || bytes < 1 || bytes > setting->max)
        weft_cli_usage(cli, "--%s is '%s': it must be a size like 512KiB, up to %lld bytes",
                       setting->option, value, (long long)setting->max);
    return bytes;
}

static void read_setting(const struct weft_cli *cli, const struct setting *setting,
                         struct weft_endpoint *endpoint)
{
    char *at = (char *)endpoint + setting->at;
    const char *text = weft_cli_get(cli, setting->option);
    if (!weft_cli_has(cli, setting->option))
        return;
    if (setting->form == SWITCH)
        *(bool *)at = read_switch(cli, setting->option);
    else if (setting->form == TEXT)
        *(const char **)(void *)at =
            strcmp(setting->option, "retry") == 0 ? read_retry(cli, text) : text;
    else
        *(int64_t *)(void *)at = setting->form == SIZE ? read_size(cli, setting)
                                 : setting->form == DURATION
                                     ? weft_cli_ms(cli, setting->option, 1, setting->max, 0)
                                     : weft_cli_i64(cli, setting->option, 1, setting->max, 0);
}

/* --header "Name: value", each; they replace those of before. */
static void read_headers(const struct weft_cli *cli, struct weft_endpoint *endpoint)
{
    const char *const *given;
    size_t count = weft_cli_all(cli, "header", &given);
    if (count == 0)
        return;
    struct weft_tag *header = weft_new_array(cli->arena, struct weft_tag, count);
    for (size_t i = 0; i < count; i++) {
        const char *colon = strchr(given[i], ':');
        if (!colon || colon == given[i])
            weft_cli_usage(cli, "--header is '%s': it must be 'Name: value'", given[i]);
        header[i].key = weft_arena_printf(cli->arena, "%.*s", (int)(colon - given[i]), given[i]);
        header[i].value = colon + 1 + strspn(colon + 1, " ");
    }
    endpoint->headers = header;
    endpoint->header_count = count;
}

/* --default SETTING, each: back to its default. */
static void read_defaults(const struct weft_cli *cli, struct weft_endpoint *endpoint)
{
    const char *const *given;
    size_t count = weft_cli_all(cli, "default", &given);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < WEFT_LEN(settings) && strcmp(settings[k].option, given[i]) != 0)
            k++;
        if (k == WEFT_LEN(settings) && strcmp(given[i], "header") != 0)
            weft_cli_usage(cli, "--default is '%s': it must be the name of another option of put",
                           given[i]);
        if (k == WEFT_LEN(settings))
            endpoint->header_count = 0;
        else if (settings[k].form == SWITCH)
            *((bool *)endpoint + settings[k].at) = false;
        else if (settings[k].form == TEXT)
            *(const char **)(void *)((char *)endpoint + settings[k].at) = NULL;
        else
            *(int64_t *)(void *)((char *)endpoint + settings[k].at) = 0;
        if (strcmp(given[i], "secret") == 0) /* there is nothing to send */
            endpoint->auth = NULL;
    }
}

/* --file: all settings, as the API takes them. */
static void read_file(const struct weft_cli *cli, const char *path, const char *name,
                      struct weft_endpoint *endpoint)
{
    const char *why = NULL;
    size_t size = 0;
    struct weft_json value;
    struct weft_err err = {0};
    char *text = weft_cli_read_file(cli, path, 1 << 20, &size, &why);
    if (!text)
        weft_cli_usage(cli, "cannot read %s: %s", path, why);
    enum weft_rc rc = weft_json_check(text, size, &value, &err);
    if (!rc)
        rc = weft_wire_read(&weft_wire_endpoint, &value, cli->arena, endpoint, &err);
    if (rc)
        weft_cli_usage(cli, "%s: %s", path, err.text);
    if (name && endpoint->name && strcmp(endpoint->name, name) != 0)
        weft_cli_usage(cli, "%s is the endpoint '%s', not '%s'", path, endpoint->name, name);
    endpoint->name = name;
}

/* ---- Actions --------------------------------------------------------------------------------- */

static enum weft_exit put(struct weft_cli *cli, const char *name)
{
    struct weft_err err = {0};
    struct weft_endpoints now = {0};
    struct weft_endpoint endpoint = {.name = name};
    const char *file = weft_cli_get(cli, "file");
    if (file)
        read_file(cli, file, name, &endpoint);
    struct weft *weft = weft_cli_open(cli);
    enum weft_rc rc = file ? WEFT_NOT_FOUND : weft_endpoints(weft, name, 0, NULL, &now, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        return weft_cli_fail(&err);
    if (!rc)
        endpoint = now.item[0];
    read_defaults(cli, &endpoint);
    for (size_t i = 0; i < WEFT_LEN(settings); i++)
        read_setting(cli, &settings[i], &endpoint);
    read_headers(cli, &endpoint);
    rc = weft_endpoint_put(weft, &endpoint, &err);
    weft_endpoints_free(&now);
    return rc ? weft_cli_fail(&err) : weft_endpoint_show(cli, weft, name);
}

static enum weft_exit remove_endpoint(struct weft_cli *cli, const char *name)
{
    struct weft_err err = {0};
    if (weft_endpoint_remove(weft_cli_open(cli), name, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "endpoint", name);
        weft_json_add_bool(&out.json, "removed", true);
        weft_json_out_end_object(&out);
    } else {
        printf("endpoint %s is removed\n", name);
    }
    return WEFT_EXIT_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct weft_option options[] = {
    {"url", 0, "URL", "put: what every call begins with, http or https", NULL},
    {"secret", 0, "NAME", "put: the secret that calls carry; each server has it, see weft-serve(1)",
     NULL},
    {"auth", 0, "HEADER", "put: how it is sent; default: 'Authorization: Bearer {secret}'", NULL},
    {"header", 0, "HEADER", "put: 'Name: value', sent with every call; may be repeated", NULL},
    {"private", 0, "[YES]", "put: calls may reach addresses that are not public", "yes no"},
    {"redirects", 0, "[YES]", "put: follow redirects within the origin of the URL", "yes no"},
    {"idempotent", 0, "[YES]", "put: any request may be sent twice, a POST too", "yes no"},
    {"idempotency-header", 0, "NAME", "put: a header that gets a key of the execution", NULL},
    {"retry", 0, "LIST", "put: statuses worth another attempt, like 408,429,5xx; or none", NULL},
    {"retry-after-max", 0, "TIME", "put: a longer wait that the server asks for is cut", NULL},
    {"max-in-flight", 0, "N", "put: calls at a time, of each server of weft", NULL},
    {"connect", 0, "TIME", "put: how long a connection may take, with look-up and TLS", NULL},
    {"first-byte", 0, "TIME", "put: how long the head of the answer may take", NULL},
    {"idle", 0, "TIME", "put: how long between two bytes of the answer", NULL},
    {"total", 0, "TIME", "put: how long all of it may take", NULL},
    {"response-max", 0, "SIZE", "put: how large an answer may be, decoded", NULL},
    {"default", 0, "SETTING", "put: back to its default: the name of an option; may be repeated",
     "secret auth header private redirects idempotent idempotency-header retry retry-after-max "
     "max-in-flight connect first-byte idle total response-max"},
    {"file", 'f', "FILE", "put: all settings as JSON, as the API takes them; - is standard input",
     NULL},
    WEFT_ENDPOINT_TEST_OPTIONS,
    {.name = NULL},
};

/* Options belong to one action: their descriptions say to which. */
static void check_options(const struct weft_cli *cli, const char *action)
{
    for (size_t i = 0; i < cli->given_count; i++) {
        const struct weft_option *option = cli->given[i].option;
        const char *colon = strchr(option->about, ':');
        bool ours = option >= options && option < options + WEFT_LEN(options);
        if (ours && colon && strncmp(option->about, action, (size_t)(colon - option->about)) != 0)
            weft_cli_usage(cli, "--%s does not go with '%s'", option->name, action);
    }
}

static enum weft_exit run_endpoint(struct weft_cli *cli)
{
    const char *action = cli->arg[0], *name = cli->arg_count > 1 ? cli->arg[1] : NULL;
    if (!weft_is_word(action, "put ls list show rm test"))
        weft_cli_usage(cli, "'%s' is neither put, ls, show, rm nor test", action);
    bool list = weft_is_word(action, "ls list");
    if (list && name)
        weft_cli_usage(cli, "'%s' takes no name; 'show' does", action);
    if (!list && !name)
        weft_cli_usage(cli, "'%s' needs the name of an endpoint", action);
    check_options(cli, action);
    if (strcmp(action, "put") == 0)
        return put(cli, name);
    if (strcmp(action, "rm") == 0)
        return remove_endpoint(cli, name);
    if (strcmp(action, "test") == 0)
        return weft_endpoint_try(cli, weft_cli_open(cli), name);
    return list ? weft_endpoint_list(cli, weft_cli_open(cli))
                : weft_endpoint_show(cli, weft_cli_open(cli), name);
}

const struct weft_command weft_command_endpoint = {
    .name = "endpoint",
    .args = "put|ls|show|rm|test [NAME]",
    .summary = "make and show the servers that weft calls itself, and try them",
    .about =
        "An execution of kind http is an HTTP call that the server makes. Its payload names an "
        "endpoint and a path behind its URL; the endpoint says how calls are made. It names a "
        "secret and never holds one: each server has it in its secrets_dir or environment.\n\n"
        "put makes an endpoint or changes it: what no option names stays as it is. --header "
        "replaces all headers, --default puts a setting back to its default, and --file replaces "
        "all settings. --private lets calls reach the networks behind the server; it takes an "
        "admin token that is not bound to a namespace.\n\n"
        "show and ls also tell what the server that answers knows of its own calls: whether the "
        "breaker lets calls begin, how many are in flight and wait, and how they have ended since "
        "it started.\n\n"
        "test lets the server make one call, with the same checks, timeouts and secret as those "
        "of executions, 30 s at most, and shows when what happened. It ends with 1 when the call "
        "had no answer, or one of 400 and above.",
    .example =
        "weft endpoint put openai --url https://api.openai.com/v1 --secret openai\n"
        "weft endpoint put openai --max-in-flight 200 --retry 408,409,429,5xx\n"
        "weft endpoint put internal --url http://10.0.0.5:8080 --private\n"
        "weft endpoint test openai --path /models\n"
        "weft endpoint ls",
    .option = options,
    .run = run_endpoint,
};
