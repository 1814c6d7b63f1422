/// How often each kind of fault has happened on a ``SimulatedFileSystem``.
public struct InjectionCounts: Sendable, Hashable, CustomStringConvertible {
  private var counts: [InjectedKind: Int] = [:]
  /// How often each injected error number was returned.
  public private(set) var errors: [SimulatedErrno: Int] = [:]

  /// Creates counts that are all 0.
  public init() {}

  /// How often faults of this kind have happened.
  public subscript(kind: InjectedKind) -> Int { counts[kind, default: 0] }

  /// The number of all faults, without the counts of sectors, lengths and names after power cuts.
  public var total: Int {
    InjectedKind.allCases.reduce(0) { sum, kind in
      switch kind {
      case .sectorKept, .lengthKept, .nameKept: sum
      default: sum + self[kind]
      }
    }
  }

  mutating func add(_ kind: InjectedKind, _ count: Int = 1) {
    counts[kind, default: 0] += count
  }

  mutating func add(_ number: SimulatedErrno) { errors[number, default: 0] += 1 }

  /// Returns the sums of the counts of two runs.
  public static func + (a: InjectionCounts, b: InjectionCounts) -> InjectionCounts {
    var sum = a
    sum.counts.merge(b.counts) { $0 + $1 }
    sum.errors.merge(b.errors) { $0 + $1 }
    return sum
  }

  /// Returns the kinds of a list that never happened. If there is one, a campaign that asked for it
  /// tested nothing.
  public func missing(of kinds: [InjectedKind]) -> [InjectedKind] {
    kinds.filter { self[$0] == 0 }
  }

  /// The kinds that happened, with their counts, as text.
  public var description: String {
    InjectedKind.allCases.filter { self[$0] > 0 }
      .map { "\($0.rawValue) \(self[$0])" }.joined(separator: ", ")
  }
}
