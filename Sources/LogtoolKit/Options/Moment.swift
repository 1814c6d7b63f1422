internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// A point of the past: a sequence, a date, or how long ago.
enum Moment: Hashable {
  case sequence(UInt64)
  case date(Timestamp)
  /// So many seconds ago.
  case ago(seconds: Int64)

  static let form = "a sequence (1000), a date (2026-09-01, 2026-09-01T08:30:00Z) or an age (1d3h)"

  /// A moment of the command line.
  static func parse(_ text: String) throws -> Moment {
    guard let moment = Moment(argument: text) else { throw ValidationError("give \(form)") }
    return moment
  }

  init?(argument: String) {
    if !argument.isEmpty, argument.utf8.allSatisfy({ (48...57).contains($0) }) {
      guard let sequence = UInt64(argument) else { return nil }
      self = .sequence(sequence)
    } else if let date = Timestamp(rfc3339: argument)
      ?? Timestamp(rfc3339: argument + "T00:00:00Z")
    {
      self = .date(date)
    } else if let seconds = Self.age(argument) {
      self = .ago(seconds: seconds)
    } else {
      return nil
    }
  }

  /// The sequence in a store; by a date, the last that was committed by then.
  func sequence(in store: Store, _ console: Console) throws(TidemarkError) -> UInt64 {
    if let date = date(console) { return try store.sequence(at: date) }
    if case .sequence(let sequence) = self { return sequence }
    return 0
  }

  /// The state of a store.
  /// - Parameter byOwnTime: whether a date is that of the entries' own times.
  func view(
    of store: Store, byOwnTime: Bool, _ console: Console
  ) throws(TidemarkError) -> StoreView {
    guard byOwnTime, let date = date(console) else {
      return try store.view(at: try sequence(in: store, console))
    }
    return try store.view(at: date, by: .ownTime)
  }

  private func date(_ console: Console) -> Timestamp? {
    switch self {
    case .sequence: return nil
    case .date(let date): return date
    case .ago(let seconds):
      let now = console.clock.now()
      return Timestamp(seconds: now.seconds - seconds, nanoseconds: now.nanoseconds)
    }
  }

  /// The seconds of `1d3h`, `90m`, `2w`.
  private static func age(_ text: String) -> Int64? {
    var total: Int64 = 0
    var number: Int64?
    for character in text.utf8 {
      if (48...57).contains(character) {
        let (scaled, overflow) = (number ?? 0).multipliedReportingOverflow(by: 10)
        guard !overflow, scaled < Int64.max - 9 else { return nil }
        number = scaled + Int64(character - 48)
        continue
      }
      let units: [UInt8: Int64] = [
        UInt8(ascii: "s"): 1, UInt8(ascii: "m"): 60, UInt8(ascii: "h"): 3600,
        UInt8(ascii: "d"): 86_400, UInt8(ascii: "w"): 604_800,
      ]
      guard let count = number, let unit = units[character], count < 1 << 32 else { return nil }
      total += count * unit
      guard total < 1 << 40 else { return nil }
      number = nil
    }
    return number == nil && total > 0 ? total : nil
  }
}
