internal import TidemarkEngine

/// A line on the terminal that says how far a long task has come.
struct Progress {
  /// The unit of the amounts.
  enum Unit {
    case bytes
    case entries
  }

  private static let intervalNanoseconds: UInt64 = 100_000_000
  private let console: Console
  private let task: String
  private let unit: Unit
  /// How much there is to do; nil when nobody knows.
  private let total: Int?
  private let isShown: Bool
  private let started: UInt64
  /// When the line was drawn last.
  private var drawn: UInt64?

  /// - Parameters:
  ///   - task: what is being done, as in "importing".
  ///   - total: how much there is to do.
  init(_ console: Console, _ task: String, unit: Unit, total: Int?) {
    self.console = console
    self.task = task
    self.unit = unit
    self.total = total
    isShown = console.showsProgress
    started = console.clock.monotonicNanoseconds()
  }

  /// Seconds since the beginning.
  var seconds: Double {
    Double(console.clock.monotonicNanoseconds() &- started) / 1e9
  }

  /// Shows how much is done, ten times a second at most.
  mutating func update(_ done: Int, note: @autoclosure () -> String = "") {
    guard isShown else { return }
    let now = console.clock.monotonicNanoseconds()
    if let drawn, now &- drawn < Self.intervalNanoseconds { return }
    drawn = now
    let text = Self.text(
      task, done: done, total: total, seconds: seconds, unit: unit, note: note(),
      columns: console.columns - 1)
    console.writeError("\r\u{1b}[K" + text)
  }

  /// Takes the line away.
  func finish() {
    if drawn != nil { console.writeError("\r\u{1b}[K") }
  }

  static func text(
    _ task: String, done: Int, total: Int?, seconds: Double, unit: Unit, note: String,
    columns: Int
  ) -> String {
    let rate = Int(Double(done) / max(seconds, 0.001))
    // In the order of the line, each with a number: the higher, the earlier it is left out.
    var parts = [(text: task, rank: 0)]
    if let total, total > 0 {
      let percent = min(100, Int(Double(done) * 100 / Double(total)))
      parts.append((bar(percent), 4))
      parts.append(("\(percent < 10 ? "  " : percent < 100 ? " " : "")\(percent) %", 1))
      parts.append(("\(amount(done, unit)) of \(amount(total, unit))", 3))
      if rate > 0 {
        let left = Double(max(0, total - done)) / Double(rate)
        parts.append(("\(HumanText.duration(seconds: left)) left", 2))
      }
    } else {
      parts.append((amount(done, unit), 1))
    }
    parts.append(("\(amount(rate, unit))/s", 5))
    if !note.isEmpty { parts.append((note, 6)) }
    while parts.reduce(-2, { $0 + $1.text.count + 2 }) > columns,
      let last = parts.indices.max(by: { parts[$0].rank < parts[$1].rank })
    {
      parts.remove(at: last)
    }
    return parts.map(\.text).joined(separator: "  ")
  }

  private static func amount(_ value: Int, _ unit: Unit) -> String {
    unit == .bytes ? HumanText.size(value) : HumanText.count(value, "entry", "entries")
  }

  private static func bar(_ percent: Int) -> String {
    let filled = percent / 10
    return "[" + String(repeating: "=", count: filled)
      + String(repeating: " ", count: 10 - filled) + "]"
  }
}
