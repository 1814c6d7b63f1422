import ArgumentParser
import Foundation

/// Runs everything and prints the result.
struct Compare: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare", abstract: "Compares Tidemark with other engines.",
    discussion: """
      Every engine does the same work, each stage in a process of its own; engines take turns in \
      every run, and the median of the runs counts. Engines: \
      \(EngineName.allCases.map(\.rawValue).joined(separator: ", ")).
      """)

  @Option(help: "How many records.") var n = 1_000_000
  @Option(help: "How many runs.") var runs = 3
  @Option(help: "Which engines, separated by commas.") var engines: String?
  @Option(help: "Which rows, separated by commas: P1,P10c; all unless given.") var rows: String?
  @Option(help: "How long values are on average.") var valueBytes = 250
  @Option(help: "Where to write the result as JSON.") var json: String?
  @Option(help: "Where to draw the result.") var svg: String?
  @Option(help: "Where to draw the rows that most programs ask for, beside SQLite.")
  var smallSVG: String?
  @Option(help: "Draws an earlier result, a file of --json, and measures nothing.")
  var from: String?
  @Option(help: "Where databases are made.") var directory = NSTemporaryDirectory()
  @Option(help: "A file of real records, a JSON document a line, to store in place of others.")
  var debian: String?
  @Option(help: "The repository whose history is stored in row P17.") var repository: String?
  @Flag(help: "Measure at several sizes.") var growth = false
  @Option(help: "The sizes of --growth, separated by commas.")
  var sizes = "10000,100000,1000000,10000000"

  func validate() throws {
    guard (1000...100_000_000).contains(n), (1...100).contains(runs),
      (64...65_536).contains(valueBytes)
    else {
      throw ValidationError("--n takes 1000 and more, --runs 1 to 100, --value-bytes 64 to 65536")
    }
    let known = Set(Row.all(n: n).map(\.id))
    for row in try wantedRows() where !known.contains(row) {
      throw ValidationError("\(row) is no row; there are \(known.sorted().joined(separator: ", "))")
    }
    _ = try wantedEngines()
    if from != nil, svg == nil, smallSVG == nil {
      throw ValidationError("--from draws, and needs --svg or --small-svg")
    }
  }

  private func wantedEngines() throws -> [EngineName] {
    guard let engines else { return EngineName.usual }
    return try engines.split(separator: ",").map { name in
      guard let engine = EngineName(rawValue: String(name)) else {
        throw ValidationError("\(name) is no engine")
      }
      return engine
    }
  }

  private func wantedRows() throws -> Set<String> {
    if let rows { return Set(rows.split(separator: ",").map(String.init)) }
    let all = Row.all(n: n).map(\.id)
    if growth { return Set(GrowthReport.rows) }
    return Set(all).subtracting(repository == nil ? ["P17"] : [])
  }

  private func wantedSizes() throws -> [Int] {
    if growth {
      return try sizes.split(separator: ",").map { text in
        guard let size = Int(text), size >= 1000 else {
          throw ValidationError("\(text) is no size")
        }
        return size
      }
    }
    // No more records than the file has lines.
    guard let debian else { return [n] }
    return [min(n, try Documents(debian).count)]
  }

  func run() throws {
    if let from {
      guard let reports = try? JSONReport.read(from) else {
        throw ValidationError("\(from) cannot be read, or is no file of --json")
      }
      return try draw(reports)
    }
    let path = "\(directory)/tidemark-bench-\(ProcessInfo.processInfo.processIdentifier)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let bytes = try debian.map { try Documents($0).mean } ?? valueBytes
    var all: [Results] = []
    for size in try wantedSizes() {
      var campaign = Campaign(
        directory: path, n: size, runs: runs, valueBytes: valueBytes, documents: debian,
        repository: repository, engines: try wantedEngines(), rows: try wantedRows())
      // Written again and again, so that a run that is broken off is not lost.
      try campaign.run { results in try write(all + [results], bytes) }
      all.append(campaign.results)
    }
    for results in all {
      print("\n\(results.n) records, values of about \(bytes) B, \(runs) runs")
      if bytes != 250 { print("Ratios bind at values of 250 B; here they only tell.") }
      TextReport(results: results).show()
    }
    if growth { GrowthReport(results: all).show() }
    if all.contains(where: { !$0.failures.isEmpty }) { throw ExitCode.failure }
  }

  private func write(_ all: [Results], _ bytes: Int) throws {
    let reports = all.map { JSONReport($0, valueBytes: bytes) }
    if let json { try JSONReport.write(reports, to: json) }
    try draw(reports)
  }

  private func draw(_ reports: [JSONReport]) throws {
    guard let last = reports.last else { return }
    if let svg {
      try SVGReport(report: last).text().write(toFile: svg, atomically: true, encoding: .utf8)
    }
    if let smallSVG {
      try SmallPicture(report: last).text()
        .write(toFile: smallSVG, atomically: true, encoding: .utf8)
    }
  }
}
