/// One piece of work on one engine, done by a process of its own. Stages run in this order.
enum Stage: String, Codable, CaseIterable {
  case load
  case async
  case buffered
  case durable
  case open
  case hot
  case scanned
  case scan
  case zipf
  case stalls
  case settled
  case settledBuffered = "settled-buffered"
  case kill
  case reopen
  case delete
  case loadLabels = "load-labels"
  case labels
  case churn
  case compact
  case small
  case cold
  case scanCompacted = "scan-compacted"
  case zipfCompacted = "zipf-compacted"
  case labelsCompacted = "labels-compacted"
  case memory
  case rebuild
  case dense
  case replay
  case history

  /// Which database it works on.
  enum Place: String {
    /// Records as they were loaded and overwritten, never compacted.
    case fresh
    /// Records with a label each, compacted.
    case compacted
    /// A copy of one of them, or a new one, which may be spoiled.
    case scratch
  }

  var place: Place {
    switch self {
    case .load, .async, .buffered, .durable, .open, .hot, .scanned, .scan, .zipf, .delete: .fresh
    case .stalls, .settled, .settledBuffered, .kill, .reopen, .rebuild, .dense, .replay, .history:
      .scratch
    default: .compacted
    }
  }

  /// The database that is copied to scratch first.
  var source: Place? {
    switch self {
    case .stalls, .kill: .fresh
    case .rebuild, .dense: .compacted
    default: nil
    }
  }

  /// Whether later stages find something else because of it.
  var writes: Bool {
    switch self {
    case .load, .async, .buffered, .durable, .kill, .loadLabels, .churn, .compact: true
    default: false
    }
  }

  /// Whether it makes the database.
  var begins: Bool {
    switch self {
    case .load, .loadLabels, .replay, .history, .settled, .settledBuffered: true
    default: false
    }
  }

  /// The rows that it measures.
  var rows: [String] {
    switch self {
    case .load: ["P1", "P13", "P14d"]
    case .async: ["P2"]
    case .buffered: ["P2b"]
    case .durable: ["P3", "P4"]
    case .open: ["P8", "P8r", "P8c"]
    case .hot: ["P5", "P5t"]
    case .scanned: ["P5s"]
    case .scan: ["P10"]
    case .zipf: ["P7", "P7m"]
    case .stalls: ["P15", "P15m"]
    case .settled: ["P19", "P19n"]
    case .settledBuffered: ["P19b", "P19bn"]
    case .kill: []
    case .reopen: ["P9"]
    case .delete: ["P12"]
    case .loadLabels: ["P1L"]
    case .labels: ["P11", "P11e", "P11k"]
    case .churn: []
    case .compact: ["C", "P13c"]
    case .small: ["P6", "P6e"]
    case .cold: ["P18"]
    case .scanCompacted: ["P10c"]
    case .zipfCompacted: ["P7c", "P7cm"]
    case .labelsCompacted: ["P11c", "P11ec"]
    case .memory: ["P14"]
    case .rebuild: ["P9r"]
    case .dense: ["P13d", "P6d"]
    case .replay: ["P16", "P16m"]
    case .history: ["P17"]
    }
  }

  /// Whether an engine can do it.
  func isOffered(by engine: EngineName) -> Bool {
    switch self {
    case .async, .settled: engine.hasAsync
    case .buffered, .settledBuffered: engine.hasBuffered
    case .scan, .scanCompacted: engine.isOrdered
    case .stalls: engine.compactsBesideWriters
    case .kill, .reopen: engine != .tkrzw && engine != .empty
    case .rebuild, .dense, .replay, .history: engine == .tidemark
    case .open, .memory, .durable, .labels, .labelsCompacted: engine != .empty
    default: true
    }
  }

  /// The stages that are needed for some rows, in their order.
  static func needed(for rows: Set<String>, _ engine: EngineName) -> [Stage] {
    let offered = allCases.filter { $0.isOffered(by: engine) }
    let wanted = Set(offered.filter { !rows.isDisjoint(with: $0.rows) })
    let last = offered.lastIndex { wanted.contains($0) } ?? -1
    return offered.enumerated().filter { index, stage in
      if wanted.contains(stage) { return true }
      guard stage.writes, index < last else { return false }
      if stage == .kill { return wanted.contains(.reopen) }
      return wanted.contains { later in
        guard let at = offered.firstIndex(of: later), at > index else { return false }
        if later == .reopen { return stage == .kill || stage.place == .fresh }
        return later.place == stage.place || later.source == stage.place
      }
    }.map(\.element)
  }
}
