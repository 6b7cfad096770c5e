/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab as a drawing in Graphviz's language.
 */
#include <config.h>

#include "testbed/castlab/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/registry/values.h"
#include "fatal-signal.h"
#include "socket-util.h"
#include "testbed/castlab/lab.h"
#include "util.h"

/* How nodes of a kind are drawn. */
static const char *const styles[] = {
    [KIND_HOST] = "shape=box, style=\"rounded,filled\", fillcolor=\"#eef3fb\"",
    [KIND_SWEDGE] = "shape=ellipse, style=filled, fillcolor=\"#e2f2e2\"",
    [KIND_SRCAGENT] = "shape=box, style=filled, fillcolor=\"#fff2d6\"",
    [KIND_OVS] = "shape=hexagon, style=filled, fillcolor=\"#f0e6f5\"",
    [KIND_ROUTER] = "shape=octagon, style=filled, fillcolor=\"#eeeeee\"",
};

/* The inside of a quoted string. */
static void
put_text(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            putc('\\', out);
        }
        putc(*c, out);
    }
}

static void
put_node(FILE *out, const struct topology_node *n)
{
    fprintf(out, "  \"%s\" [%s, label=\"%s", n->name, styles[n->kind], n->name);
    if (n->kind != KIND_HOST) {
        fprintf(out, "\\n%s", topology_kind_name(n->kind));
    } else if (!IN6_IS_ADDR_UNSPECIFIED(&n->address)) {
        fprintf(out, "\\n%s", ip6_text(&n->address));
    }
    if (n->id) {
        fprintf(out, "  0x%04x", n->id);
    }
    if (n->plane[0]) {
        fprintf(out, "\\nplane %s", n->plane);
    }
    fprintf(out, "%s%s\"];\n", n->no_aggregation ? "\\nreplicates only" : "",
            n->no_rdma ? "\\nno RDMA" : "");
}

/* Hosts' links have one device, which is a port of both.  What comes first is drawn above: hosts of source agents, and
 * otherwise the switch. */
static void
put_link(FILE *out, const struct topology *t, const struct topology_link *link)
{
    bool is_bad = link->impair[0][0] || link->impair[1][0];
    bool is_below = link->has_host && t->nodes[link->ends[1].node].kind != KIND_SRCAGENT;

    fprintf(out, "  \"%s\" -- \"%s\" [%s=\"", t->nodes[link->ends[is_below].node].name,
            t->nodes[link->ends[!is_below].node].name, is_below ? "headlabel" : "taillabel");
    put_text(out, link->ends[0].netdev);
    if (!link->has_host) {
        fputs("\", headlabel=\"", out);
        put_text(out, link->ends[1].netdev);
    }
    if (is_bad) {
        fputs("\", color=\"#c03030\", label=\"", out);
        for (size_t i = 0; i < 2; i++) {
            if (link->impair[i][0]) {
                fprintf(out, "%s%s to %s: ", i && link->impair[0][0] ? "\\n" : "",
                        t->nodes[link->ends[i].node].name, t->nodes[link->ends[!i].node].name);
                put_text(out, link->impair[i]);
            }
        }
    }
    fprintf(out, "\"%s];\n", link->kind == PORT_XDP ? ", style=bold" : "");
}

void
graph_print(const struct topology *t, FILE *out)
{
    fprintf(
        out,
        "graph \"%s\" {\n"
        "  graph [label=\"%s\", labelloc=t, fontname=\"sans-serif\", nodesep=0.5, ranksep=0.9];\n"
        "  node [fontname=\"sans-serif\", fontsize=11, color=\"#606060\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=8, color=\"#606060\", fontcolor=\"#404040\"];\n",
        t->name, t->name);
    for (size_t i = 0; i < t->n_nodes; i++) {
        put_node(out, &t->nodes[i]);
    }
    for (size_t i = 0; i < t->n_links; i++) {
        put_link(out, t, &t->links[i]);
    }
    fputs("}\n", out);
}

/* Runs dot with the text as its input.  Its exit status, 127: there is none. */
static int
run_dot(const char *text, size_t len)
{
    int pipe_fds[2], status = 0;

    fflush(stdout);
    xpipe(pipe_fds);
    pid_t pid = fork();
    if (!pid) {
        dup2(pipe_fds[0], STDIN_FILENO);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        execlp("dot", "dot", "-Tsvg", (char *) NULL);
        _exit(127);
    }
    close(pipe_fds[0]);
    bool is_written = pid > 0 && !write_fully(pipe_fds[1], text, len, &(size_t){0});
    close(pipe_fds[1]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        return 1;
    }
    return WIFEXITED(status) && (WEXITSTATUS(status) || is_written) ? WEXITSTATUS(status) : 1;
}

char *
graph_print_svg(const struct topology *t)
{
    char *text;
    size_t len;
    FILE *stream = open_memstream(&text, &len);

    if (!stream) {
        return xasprintf("--svg: %s", ovs_strerror(errno));
    }
    graph_print(t, stream);
    fclose(stream);
    fatal_ignore_sigpipe();
    int status = run_dot(text, len);
    free(text);
    return status == 127 ? xstrdup("--svg: there is no program 'dot' (Debian: graphviz)")
           : status      ? xasprintf("--svg: dot has failed with exit status %d", status)
                         : NULL;
}

/*
 * A lab that is up.
 */

static size_t
index_of(const struct topology *t, const char *name)
{
    size_t i = 0;

    while (i < t->n_nodes && strcmp(t->nodes[i].name, name)) {
        i++;
    }
    return i;
}

static void
add_node(struct topology *t, const struct journal_entry *e)
{
    struct topology_node *n = &t->nodes[t->n_nodes++];

    ovs_strlcpy(n->name, e->fields[0], sizeof n->name);
    topology_kind_parse(e->fields[1], &n->kind);
}

/* The journal has a link's ends one after the other. */
static bool
add_link(struct topology *t, const struct journal_entry *const ends[2])
{
    struct topology_link *link = &t->links[t->n_links++];

    for (size_t i = 0; i < 2; i++) {
        link->ends[i].node = index_of(t, ends[i]->fields[0]);
        if (link->ends[i].node == t->n_nodes || strcmp(ends[i]->fields[3], ends[!i]->fields[0])) {
            return false;
        }
        ovs_strlcpy(link->ends[i].netdev, ends[i]->fields[1], sizeof link->ends[i].netdev);
        link->has_host |= t->nodes[link->ends[i].node].kind == KIND_HOST;
    }
    return true;
}

char *
graph_of_lab(const char *lab, struct topology **topologyp)
{
    const struct journal_entry *e = NULL, *ends[2] = {NULL, NULL};
    struct journal_list list;
    char *error = lab_read(lab, &list);

    *topologyp = NULL;
    if (error) {
        return error;
    }
    struct topology *t = xzalloc(sizeof *t);
    ovs_strlcpy(t->name, lab, sizeof t->name);
    t->nodes = xcalloc(list.n + 1, sizeof *t->nodes);
    t->links = xcalloc(list.n + 1, sizeof *t->links);
    while ((e = journal_next(&list, e, '.', "node", NULL))) {
        add_node(t, e);
    }
    for (size_t n = 0; !error && (e = journal_next(&list, e, '.', "port", NULL)); n++) {
        ends[n & 1] = e;
        if (n & 1 && !add_link(t, ends)) {
            error = xasprintf("the journal of lab '%s' has a link that does not fit: line %u", lab,
                              e->line);
        }
    }
    journal_list_uninit(&list);
    if (error) {
        topology_destroy(t);
    } else {
        *topologyp = t;
    }
    return error;
}
