"""Makes of a dashboard the JSON that Grafana reads, with the foundation SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import common as looks
from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.alerts.alert import RUNBOOKS
from dashboards.model import HEALTHY, WIDTH, Board, Kind, Panel, Query, Variable

TAG: Final = "disque"
SOURCE: Final = dashboard.DataSourceRef(type_val="prometheus", uid="$datasource")
REFRESH: Final = "30s"
ALL: Final = "$__all"
CHANGES: Final = "Changes of clusters"

AnyPanel: TypeAlias = timeseries.Panel | stat.Panel | statetimeline.Panel | table.Panel | heatmap.Panel


def json_of(board: Board) -> str:
    """Return the dashboard as JSON, in a stable order."""
    return JSONEncoder(indent=2, sort_keys=True, ensure_ascii=False).encode(built(board)) + "\n"


def built(board: Board) -> dashboard.Dashboard:
    """Return the dashboard as an object of Grafana's SDK."""
    made = (
        boards.Dashboard(board.title)
        .uid(board.uid)
        .description(board.text)
        .tags([TAG])
        .editable()
        .refresh(REFRESH)
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(_other_dashboards())
        .with_variable(boards.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in board.variables:
        made = made.with_variable(_choice(variable))
    if board.annotates:
        made = made.annotation(_changes(board))
    number = 0
    for row in board.rows:
        number += 1
        made = made.with_row(boards.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made = made.with_panel(_panel(panel).id(number))
    return made.build()


def _changes(board: Board) -> boards.AnnotationQuery:
    """Marks in all panels of a board: while a cluster is upgraded, scaled, drained or repaired."""
    chosen = {variable.name for variable in board.variables} & {"namespace", "cluster"}
    selector = ",".join(f'{name}=~"${name}"' for name in sorted(chosen, reverse=True))
    changing = f'disque_operator_cluster_phase{{{selector},phase=~"Upgrading|Growing|Draining|Healing"}} == 1'
    return boards.AnnotationQuery().name(CHANGES).datasource(SOURCE).enable(True).icon_color("blue").expr(changing)


def _other_dashboards() -> boards.DashboardLink:
    """A menu of all dashboards of this project, which keeps the variables and the time range."""
    link = boards.DashboardLink("Disque").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.as_dropdown(True).include_vars(True).keep_time(True)


def _choice(variable: Variable) -> boards.QueryVariable:
    """A variable that selects all values by default, including series without the label."""
    return (
        boards.QueryVariable(variable.name)
        .label(variable.label)
        .datasource(SOURCE)
        .query({"query": variable.values, "refId": variable.name})
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(dashboard.VariableOption(selected=True, text="All", value=ALL))
    )


def _panel(panel: Panel) -> AnyPanel:
    """A panel with the settings of its kind and the settings that all kinds share."""
    made = _KINDS[panel.kind](panel)
    made = made.title(panel.title).description(panel.text).unit(panel.unit).datasource(SOURCE)
    made = made.height(panel.height).span(min(panel.width, WIDTH)).thresholds(_steps(panel))
    for letter, query in zip(_letters(panel), panel.queries, strict=True):
        made = made.with_target(_target(panel, query, letter))
    if panel.names:
        words = {
            f"{value:g}": dashboard.ValueMappingResult(text=text, color=color) for value, text, color in panel.names
        }
        made = made.mappings([dashboard.ValueMap(options=words)])
    if panel.most is not None:
        made = made.max(panel.most)
    if panel.empty:
        made = made.no_value("none")
    if panel.leads_to:
        more = boards.DashboardLink("Details").type(dashboard.DashboardLinkType.LINK)
        made = made.links([more.url(f"/d/{panel.leads_to}?${{__url_time_range}}&${{__all_variables}}")])
    return made


def _letters(panel: Panel) -> list[str]:
    """The names of the queries."""
    return [chr(ord("A") + number) for number in range(len(panel.queries))]


def _unit(query: Query) -> dashboard.DynamicConfigValue:
    """The unit of the values of a query."""
    return dashboard.DynamicConfigValue(id_val="unit", value=query.unit)


def _steps(panel: Panel) -> boards.ThresholdsConfig:
    """The thresholds at which a value changes its color."""
    steps = [dashboard.Threshold(None, HEALTHY), *(dashboard.Threshold(*step) for step in panel.steps)]
    return boards.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(panel: Panel, query: Query, letter: str) -> prometheus.Dataquery:
    """A query: instant for tables, a range for all other kinds."""
    target = prometheus.Dataquery().expr(query.promql).ref_id(letter).datasource(SOURCE)
    if panel.kind is Kind.HEATMAP:
        return target.range().format(PromQueryFormat.HEATMAP).legend_format(query.legend)
    if panel.kind is Kind.TABLE:
        return target.instant().format(PromQueryFormat.TABLE)
    return target.range().legend_format(query.label or "__auto")


def _stat(panel: Panel) -> stat.Panel:
    """The last value, colored by the thresholds."""
    return (
        stat.Panel()
        .reduce_options(looks.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE if panel.names else common.BigValueGraphMode.AREA)
        .color_scheme(boards.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    )


def _lines(panel: Panel) -> timeseries.Panel:
    """Values over time, with the thresholds as horizontal lines."""
    legend = looks.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
    made = (
        timeseries.Panel()
        .legend(legend.display_mode(common.LegendDisplayMode.LIST).calcs([]))
        .tooltip(looks.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING))
        .line_width(1)
        .fill_opacity(10)
        .show_points(common.VisibilityMode.NEVER)
        .axis_soft_min(0)
    )
    if panel.steps:
        dashed = looks.GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED)
        made = made.thresholds_style(dashed)
    for letter, query in zip(_letters(panel), panel.queries, strict=True):
        if query.unit:
            made = made.override_by_query(letter, [_unit(query)])
    return made


def _stack(panel: Panel) -> timeseries.Panel:
    """Shares of a whole over time."""
    return _lines(panel).fill_opacity(40).stacking(looks.StackingConfig().mode(common.StackingMode.NORMAL))


def _states(_panel: Panel) -> statetimeline.Panel:
    """A band for each series."""
    by_thresholds = boards.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS)
    return statetimeline.Panel().merge_values(True).fill_opacity(70).line_width(0).color_scheme(by_thresholds)


def _table(panel: Panel) -> table.Panel:
    """A row for each combination of labels, a column for each query."""
    columns = {f"Value #{letter}": query.legend for letter, query in zip(_letters(panel), panel.queries, strict=True)}
    if len(columns) == 1:  # Grafana does not number a single column
        columns["Value"] = panel.queries[0].legend
    made = (
        table.Panel()
        .with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            dashboard.DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": columns}
            )
        )
        .sort_by([looks.TableSortByFieldState().display_name(panel.queries[0].legend).desc(True)])
    )
    if panel.runbooks:
        page = dashboard.DashboardLink(title="Runbook", url=f"{RUNBOOKS}/${{__value.text}}.md", target_blank=True)
        made = made.override_by_name("alertname", [dashboard.DynamicConfigValue(id_val="links", value=[page])])
    for query in panel.queries:
        if query.unit:
            made = made.override_by_name(query.legend, [_unit(query)])  # the rows of all queries are merged
    return made


def _heatmap(panel: Panel) -> heatmap.Panel:
    """The buckets of a histogram over time."""
    axis = heatmap.YAxisConfig().unit(panel.unit).axis_placement(common.AxisPlacement.LEFT)
    colors = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").exponent(0.5).steps(64)
    return heatmap.Panel().calculate(False).y_axis(axis).color(colors)


_KINDS: Final[dict[Kind, Callable[[Panel], AnyPanel]]] = {
    Kind.STAT: _stat,
    Kind.LINES: _lines,
    Kind.STACK: _stack,
    Kind.STATES: _states,
    Kind.TABLE: _table,
    Kind.HEATMAP: _heatmap,
}
