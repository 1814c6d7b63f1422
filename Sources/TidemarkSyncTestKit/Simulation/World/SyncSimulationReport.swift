/// The outcome of a simulation.
public struct SyncSimulationReport: Sendable, Hashable, CustomStringConvertible {
  /// How often what happened.
  public var counts: [String: Int] = [:]
  /// Equal runs have equal ones.
  public var trace: UInt64 = 0

  /// Creates an empty one.
  public init() {}

  mutating func count(_ name: String, _ more: Int = 1) { counts[name, default: 0] += more }

  mutating func note(_ value: UInt64) {
    trace = (trace ^ value) &* 0x9e37_79b9_7f4a_7c15
    trace ^= trace >> 29
  }

  /// Two reports together, in whichever order.
  public static func + (a: SyncSimulationReport, b: SyncSimulationReport) -> SyncSimulationReport {
    var sum = a
    sum.counts.merge(b.counts) { $0 + $1 }
    sum.trace = a.trace &+ b.trace
    return sum
  }

  /// The counts, one a line.
  public var description: String {
    counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
  }
}
