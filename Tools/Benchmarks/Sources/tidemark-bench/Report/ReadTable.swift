import CAllocationCount
import Foundation

/// Ways to read, each with its cost of one read in each run.
struct ReadTable {
  private struct Row {
    var title: String
    /// Microseconds of one read by the clock, in each run.
    var wall: [Double] = []
    /// Microseconds of processor for one read, of all threads, until the process is quiet.
    var processor: [Double] = []
    var allocations: [Double] = []
  }

  private var rows: [Row] = []

  /// Measures reads that the thread which calls this does.
  mutating func add(_ title: String, reads: Int, _ work: () throws -> Void) rethrows {
    let meter = Meter()
    try work()
    add(title, reads: reads, meter.stop())
  }

  /// Measures reads that run on the executor of the caller.
  /// - Parameter tasks: how many of them read at the same time.
  nonisolated(nonsending) mutating func add(
    _ title: String, reads: Int, tasks: Int = 1,
    _ work: nonisolated(nonsending) () async throws -> Void
  ) async rethrows {
    let meter = Meter()
    try await work()
    var cost = meter.stop()
    // Threads other than this one did the work.
    if tasks > 1 { cost.allocations = .nan }
    add(title, reads: reads, cost)
  }

  private mutating func add(_ title: String, reads: Int, _ cost: Meter.Cost) {
    if !rows.contains(where: { $0.title == title }) { rows.append(Row(title: title)) }
    guard let place = rows.firstIndex(where: { $0.title == title }) else { return }
    let each = 1 / Double(max(1, reads))
    rows[place].wall.append(cost.wall * each * 1e6)
    rows[place].processor.append(cost.processor * each * 1e6)
    rows[place].allocations.append(cost.allocations * each)
  }

  /// Prints the medians of all runs, and of the times the least and the most.
  func show(_ title: String) {
    print("\n\(title), us: median (least..most)\n")
    print("| | a read | processor until quiet | allocations |\n|---|---|---|---|")
    for row in rows {
      let wall = Statistics(row.wall)
      let range = "\(Figures.short(wall.smallest))..\(Figures.short(wall.largest))"
      let allocations = Statistics.median(row.allocations)
      let cells = [
        "\(Figures.short(wall.median)) (\(range))",
        Figures.short(Statistics.median(row.processor)),
        allocations.isNaN ? "-" : Figures.fixed(allocations, 2),
      ]
      print("| \(row.title) | " + cells.joined(separator: " | ") + " |")
    }
  }
}

/// Measures what something costs until nothing is done for it any more.
private struct Meter {
  struct Cost {
    /// Seconds.
    var wall: Double
    var processor: Double
    var allocations: Double
  }

  // In this order: the wait comes before what is measured.
  private let processor = Self.settledProcessorSeconds()
  private let allocations = allocation_count()
  private let start = nanoseconds()

  func stop() -> Cost {
    let wall = Double(nanoseconds() - start) * 1e-9
    let allocations = Double(allocation_count() &- allocations)
    return Cost(
      wall: wall, processor: Self.settledProcessorSeconds() - processor,
      allocations: allocations_are_counted() ? allocations : .nan)
  }

  /// Waits until the process has used no more than a tenth of a thread for a while.
  private static func settledProcessorSeconds() -> Double {
    var before = tidemark_bench.Cost.processorSeconds()
    for _ in 0..<200 {
      Thread.sleep(forTimeInterval: 0.1)
      let now = tidemark_bench.Cost.processorSeconds()
      if now - before < 0.01 { return now }
      before = now
    }
    return before
  }
}
