import Foundation

/// The result for programs.
struct JSONReport: Codable {
  struct Engine: Codable {
    var figure: Statistics
    /// Microseconds of processor time an operation.
    var processor: Double?
    var more: [String: Double]
  }

  struct Line: Codable {
    var id: String
    var title: String
    var unit: String
    var moreIsBetter: Bool
    var engines: [String: Engine]
    var bestPeer: String?
    /// Tidemark's figure by the best peer's.
    var ofBestPeer: Double?
    var targets: [Target.Verdict]
  }

  var n: Int
  var valueBytes: Int
  var date: String
  var machine: String
  var limits: [String: Statistics]
  var settings: [String: [String]]
  var rows: [Line]
  var failures: [String]

  init(_ results: Results, valueBytes: Int) {
    n = results.n
    self.valueBytes = valueBytes
    date = Date().formatted(.iso8601)
    let process = ProcessInfo.processInfo
    machine =
      "\(process.operatingSystemVersionString), \(process.activeProcessorCount) processors, "
      + "\(process.physicalMemory >> 30) GiB"
    limits = results.limitStatistics
    settings = [:]
    for engine in EngineName.allCases { settings[engine.rawValue] = results.settings(engine) }
    rows = Row.all(n: results.n).filter { !results.engines($0.id).isEmpty }.map { row in
      Self.line(row, results)
    }
    failures = results.failures
  }

  private static func line(_ row: Row, _ results: Results) -> Line {
    var engines: [String: Engine] = [:]
    for engine in results.engines(row.id) {
      guard let figure = results.statistics(row.id, engine) else { continue }
      engines[engine.rawValue] = Engine(
        figure: figure, processor: results.processor(row.id, engine),
        more: results.more(row.id, engine))
    }
    let best = results.bestPeer(row)
    var share: Double?
    if let own = results.median(row.id, .tidemark), let best, best.value > 0 {
      share = own / best.value
    }
    return Line(
      id: row.id, title: row.title, unit: row.unit, moreIsBetter: row.moreIsBetter,
      engines: engines, bestPeer: best?.engine.rawValue, ofBestPeer: share,
      targets: row.targets.compactMap { $0.verdict(row, results) })
  }

  static func read(_ path: String) throws -> [JSONReport] {
    try JSONDecoder().decode([JSONReport].self, from: Data(contentsOf: URL(filePath: path)))
  }

  static func write(_ reports: [JSONReport], to path: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try encoder.encode(reports).write(to: URL(filePath: path))
  }
}
