import ArgumentParser
import TidemarkTestKit

/// Parts of the engine, each by itself, at several sizes.
struct Units: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Times parts of the engine one by one, and how their costs grow.")

  @Option(help: "Sizes: how many keys or blocks there are.", transform: numbers)
  var sizes = [1_000, 100_000, 1_000_000]
  @Option(help: "How often each is run; the middle one counts.") var runs = 5
  @Option(help: "Only these parts, by name, with commas.") var only: String?

  private static func numbers(_ text: String) throws -> [Int] {
    try text.split(separator: ",").map { part in
      guard let number = Int(part.filter { $0 != "_" }), number > 0 else {
        throw ValidationError("not a number of items: \(part)")
      }
      return number
    }
  }

  func validate() throws {
    guard runs > 0 else { throw ValidationError("at least one run is needed") }
    _ = try chosen()
  }

  private func chosen() throws -> [UnitBenchmark] {
    guard let only else { return UnitBenchmark.allCases }
    return try only.split(separator: ",").map { name in
      guard let unit = UnitBenchmark(rawValue: String(name)) else {
        let known = UnitBenchmark.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValidationError("no part is called \(name); there are \(known)")
      }
      return unit
    }
  }

  func run() throws {
    print("Nanoseconds of an operation: median of \(runs) runs, fastest and slowest of them\n")
    print("| Part | " + sizes.map { "\($0) items" }.joined(separator: " | ") + " |")
    print("|---|" + String(repeating: "---|", count: sizes.count))
    for unit in try chosen() {
      let cells = try sizes.map { size in
        let times = Statistics(try measure(unit, size))
        return [times.median, times.smallest, times.largest].map(Figures.short)
      }
      print(
        "| \(unit.rawValue) | "
          + cells.map { "\($0[0]) (\($0[1]) to \($0[2]))" }.joined(separator: " | ") + " |")
    }
  }

  private func measure(_ unit: UnitBenchmark, _ size: Int) throws -> [Double] {
    let work = try unit.prepare(items: size)
    // A run that is too short for the clock is repeated within one measurement.
    let repeats = max(1, 100_000 / work.operations)
    try work.run()
    return try (0..<runs).map { _ in
      let before = nanoseconds()
      for _ in 0..<repeats { try work.run() }
      return Double(nanoseconds() - before) / Double(repeats * work.operations)
    }
  }
}
