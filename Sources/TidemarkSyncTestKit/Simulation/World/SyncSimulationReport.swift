/// The counts of a ``SyncSimulation`` that broke no promise, and a hash to compare runs.
public struct SyncSimulationReport: Sendable, Hashable, CustomStringConvertible {
  /// How often each kind of event and outcome occurred, by name.
  public var counts: [String: Int] = [:]
  /// A hash of the run. Two runs of the same script must have the same hash.
  public var trace: UInt64 = 0

  /// Creates a report without counts, to which others can be added.
  public init() {}

  mutating func count(_ name: String, _ more: Int = 1) { counts[name, default: 0] += more }

  mutating func note(_ value: UInt64) {
    trace = (trace ^ value) &* 0x9e37_79b9_7f4a_7c15
    trace ^= trace >> 29
  }

  /// Adds the counts of two reports; the order of the two does not matter.
  public static func + (a: SyncSimulationReport, b: SyncSimulationReport) -> SyncSimulationReport {
    var sum = a
    sum.counts.merge(b.counts) { $0 + $1 }
    sum.trace = a.trace &+ b.trace
    return sum
  }

  /// The counts as text, one a line.
  public var description: String {
    counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
  }
}
