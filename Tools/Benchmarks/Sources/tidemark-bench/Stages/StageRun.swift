import Foundation

/// Does a stage and prints its measures.
struct StageRun {
  let order: ChildOrder
  let values: Values
  let labels: Labels

  /// A cache that holds everything.
  static let largeCache = 1 << 30
  static let smallCache = 1 << 20
  static let batch = 1000
  /// Single reads that are timed, and keys that are read before to warm caches.
  static let reads = 300_000
  static let warmed = 1_000_000

  init(_ order: ChildOrder) throws {
    self.order = order
    let documents = try order.documents.map { try Documents($0) }
    values = Values(mean: documents?.mean ?? order.valueBytes, documents: documents)
    labels = Labels(n: order.n)
  }

  var n: Int { order.n }

  func run() throws {
    switch order.stage {
    case .load: try load()
    case .async: try puts("P2", .async)
    case .buffered: try puts("P2b", .buffered)
    case .durable: try durable()
    case .open: try open()
    case .hot: try hot()
    case .scanned: try scanned()
    case .scan: try scans("P10", labelled: false)
    case .zipf: try zipf("P7", labelled: false)
    case .stalls: try stalls()
    case .settled: try settled("P19", "P19n", .async)
    case .settledBuffered: try settled("P19b", "P19bn", .buffered)
    case .kill: try kill()
    case .reopen: try reopen("P9")
    case .delete: try delete()
    case .loadLabels: try loadLabels()
    case .labels: try documents("P11", whole: "P11e", keys: "P11k")
    case .churn: try churn()
    case .compact: try compact()
    case .small: try small("P6", whole: "P6e")
    case .cold: try cold()
    case .scanCompacted: try scans("P10c", labelled: true)
    case .zipfCompacted: try zipf("P7c", labelled: true)
    case .labelsCompacted: try documents("P11c", whole: "P11ec", keys: nil)
    case .memory: try memory()
    case .rebuild: try rebuild()
    case .dense: try dense()
    case .replay: try replay()
    case .history: try history()
    }
  }

  func options(
    cache: Int = largeCache, level: PutLevel = .buffered, labelled: Bool = false
  ) -> EngineOptions {
    // Tkrzw has one level below durable.
    let level = level == .buffered && !order.engine.hasBuffered ? .async : level
    return EngineOptions(
      path: order.path, n: n, values: values, cacheBytes: cache, level: level,
      labels: labelled ? labels : nil)
  }

  func engine(
    cache: Int = largeCache, level: PutLevel = .buffered, labelled: Bool = false
  ) throws -> any BenchEngine {
    let engine = try order.engine.open(options(cache: cache, level: level, labelled: labelled))
    show(settings: engine.settings)
    return engine
  }

  func show(settings: [String]) { ChildLine(settings: settings).show() }

  func show(_ measure: Measure) { ChildLine(measure: measure).show() }

  /// A seed of this stage; the same for all engines.
  func seed(_ number: UInt64 = 0) -> UInt64 {
    UInt64(order.run) << 32 | UInt64(Stage.allCases.firstIndex(of: order.stage) ?? 0) << 8 | number
  }

  /// A revision that no other write of the run has.
  var revision: Int { order.run * 100 + (Stage.allCases.firstIndex(of: order.stage) ?? 0) }
}
