/// How often each kind of fault happened.
public struct InjectionCounts: Sendable, Hashable, CustomStringConvertible {
  private var counts: [InjectedKind: Int] = [:]
  /// Injected errors by number.
  public private(set) var errors: [SimulatedErrno: Int] = [:]

  /// Creates counts of zero.
  public init() {}

  /// How often a kind happened.
  public subscript(kind: InjectedKind) -> Int { counts[kind, default: 0] }

  /// How many faults there were, not counting what survived a power cut.
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

  /// The counts of several runs together.
  public static func + (a: InjectionCounts, b: InjectionCounts) -> InjectionCounts {
    var sum = a
    sum.counts.merge(b.counts) { $0 + $1 }
    sum.errors.merge(b.errors) { $0 + $1 }
    return sum
  }

  /// The kinds of a list that never happened: a campaign that asked for them tested nothing.
  public func missing(of kinds: [InjectedKind]) -> [InjectedKind] {
    kinds.filter { self[$0] == 0 }
  }

  /// The kinds that happened, with their counts.
  public var description: String {
    InjectedKind.allCases.filter { self[$0] > 0 }
      .map { "\($0.rawValue) \(self[$0])" }.joined(separator: ", ")
  }
}
