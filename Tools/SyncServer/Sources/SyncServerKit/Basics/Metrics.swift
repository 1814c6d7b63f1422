/// Counts what the server does, and renders it in the text format of Prometheus.
final class Metrics: Sendable {
  private struct Series: Hashable {
    var route: String
    var status: Int
  }

  private struct Histogram {
    var counts = [UInt64](repeating: 0, count: Metrics.bounds.count)
    var count: UInt64 = 0
    var sum = 0.0
  }

  private struct State {
    var requests: [Series: UInt64] = [:]
    var seconds: [String: Histogram] = [:]
    var received: UInt64 = 0
    var sent: UInt64 = 0
    var entries: UInt64 = 0
    var waiting = 0
    var compactions: UInt64 = 0
    var failedCompactions: UInt64 = 0
    var freed: UInt64 = 0
    var compactingSeconds = 0.0
    var compacting = 0
  }

  /// The bounds of the histogram, in seconds.
  private static let bounds = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
  ]

  private let state = PosixMutex(State())

  func finished(
    _ route: String, status: Int, received: Int, sent: Int, entries: Int, in time: Duration
  ) {
    let seconds = time / .seconds(1)
    state.withLock { state in
      state.requests[Series(route: route, status: status), default: 0] += 1
      state.received += UInt64(received)
      state.sent += UInt64(sent)
      state.entries += UInt64(entries)
      var histogram = state.seconds[route] ?? Histogram()
      histogram.count += 1
      histogram.sum += seconds
      for (index, bound) in Self.bounds.enumerated() where seconds <= bound {
        histogram.counts[index] += 1
      }
      state.seconds[route] = histogram
    }
  }

  func waiting(_ change: Int) { state.withLock { $0.waiting += change } }

  func compactionBegan() { state.withLock { $0.compacting += 1 } }
  func compactionEnded() { state.withLock { $0.compacting -= 1 } }
  func compactionFailed() { state.withLock { $0.failedCompactions += 1 } }
  func compacted(freed: Int, in time: Duration) {
    state.withLock { state in
      state.compactions += 1
      state.freed += UInt64(max(0, freed))
      state.compactingSeconds += time / .seconds(1)
    }
  }

  /// The text of `/metrics`.
  func text(openDatabases: Int, connections: Int, home: [HomeMetric] = []) -> String {
    let state = state.withLock { $0 }
    var text = ""
    func add(_ name: String, _ type: String, _ help: String, _ rows: [(String, String)]) {
      text += "# HELP tidemark_\(name) \(help)\n# TYPE tidemark_\(name) \(type)\n"
      for (labels, value) in rows { text += "tidemark_\(name)\(labels) \(value)\n" }
    }
    func add(_ name: String, _ type: String, _ help: String, _ value: some CustomStringConvertible)
    { add(name, type, help, [("", value.description)]) }
    let requests = state.requests.sorted {
      ($0.key.route, $0.key.status) < ($1.key.route, $1.key.status)
    }
    add(
      "requests_total", "counter", "Requests that were answered.",
      requests.map {
        ("{route=\"\($0.key.route)\",status=\"\($0.key.status)\"}", $0.value.description)
      })
    add("received_bytes_total", "counter", "Bytes of bodies of requests.", state.received)
    add("sent_bytes_total", "counter", "Bytes of bodies of answers.", state.sent)
    add("pushed_entries_total", "counter", "Changes in batches that were answered.", state.entries)
    add("open_databases", "gauge", "Databases that are open.", openDatabases)
    add("connections", "gauge", "Connections that are open.", connections)
    add("waiting_pulls", "gauge", "Pulls that wait for something to come.", state.waiting)
    add("compactions_total", "counter", "Compactions that were finished.", state.compactions)
    add(
      "compaction_failures_total", "counter", "Compactions that failed.", state.failedCompactions)
    add(
      "compaction_freed_bytes_total", "counter", "Bytes that compactions gave back.", state.freed)
    add(
      "compaction_seconds_total", "counter", "Time that finished compactions took.",
      state.compactingSeconds)
    add("running_compactions", "gauge", "Compactions under way.", state.compacting)
    for (index, metric) in home.enumerated() where index == 0 || home[index - 1].name != metric.name
    {
      add(
        metric.name, metric.kind, metric.help,
        home.filter { $0.name == metric.name }.map { ($0.labels, "\($0.value)") })
    }
    text += Self.histograms(state.seconds)
    return text
  }

  private static func histograms(_ rows: [String: Histogram]) -> String {
    let name = "tidemark_request_seconds"
    var text = "# HELP \(name) Time until a request was answered.\n# TYPE \(name) histogram\n"
    for (route, row) in rows.sorted(by: { $0.key < $1.key }) {
      for (index, bound) in bounds.enumerated() {
        text += "\(name)_bucket{route=\"\(route)\",le=\"\(bound)\"} \(row.counts[index])\n"
      }
      text += "\(name)_bucket{route=\"\(route)\",le=\"+Inf\"} \(row.count)\n"
      text += "\(name)_sum{route=\"\(route)\"} \(row.sum)\n"
      text += "\(name)_count{route=\"\(route)\"} \(row.count)\n"
    }
    return text
  }
}
