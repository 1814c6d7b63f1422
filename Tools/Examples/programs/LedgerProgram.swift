public import ArgumentParser
import CollectionExamples
import Foundation
import Tidemark

/// A ledger in a terminal: payments in, balances out.
public struct LedgerProgram: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "ledger", abstract: "Keeps payments, and balances that are made of them.",
    discussion: "Type: pay FROM TO AMOUNT, undo, balance WHO, payments WHO.")

  @Option(help: "The store, a directory; made where there is none.")
  var data = "ledger.tidemark"

  public init() {}

  public func run() async throws {
    let store = try await Store.open(at: data)
    let terminal = Terminal()
    defer { terminal.restore() }
    try await run(store, input: terminal.input) { terminal.show($0, typed: $1) }
    try await store.close()
  }

  /// Runs until the input ends.
  func run(
    _ store: Store, input: AsyncStream<Input>, show: ([String], String) -> Void
  ) async throws {
    let ledger = try Ledger(store)
    var paid: [WriteReceipt] = []
    var answer = ["pay FROM TO AMOUNT, undo, balance WHO, payments WHO"]
    show(answer, "")
    for await input in input {
      switch input {
      case .typing(let text): show(answer, text)
      case .line(let line) where !line.isEmpty:
        do { answer = try await Self.answer(ledger, &paid, line) } catch { answer = ["\(error)"] }
        show(answer, "")
      case .line, .end: break
      }
    }
  }

  private static func answer(
    _ ledger: Ledger, _ paid: inout [WriteReceipt], _ line: String
  ) async throws -> [String] {
    let words = line.split(separator: " ").map(String.init)
    switch (words.first, words.count) {
    case ("pay", 4):
      guard let amount = Int(words[3]), amount > 0 else { return ["an amount is a whole number"] }
      let id = UUID().uuidString
      paid.append(try await ledger.pay(id, from: words[1], to: words[2], amount))
      return try await balances(ledger, [words[1], words[2]])
    case ("undo", 1):
      guard let last = paid.popLast() else { return ["nothing was paid since the start"] }
      try await ledger.undo(last)
      return ["the last payment is taken back"]
    case ("balance", 2): return try await balances(ledger, [words[1]])
    case ("payments", 2):
      return try ledger.payments(from: words[1]).map { "\($0.amount) to \($0.to)" }
    default: return ["pay FROM TO AMOUNT, undo, balance WHO, payments WHO"]
    }
  }

  private static func balances(_ ledger: Ledger, _ accounts: [String]) async throws -> [String] {
    var lines: [String] = []
    for account in accounts { lines.append("\(account): \(try await ledger.balance(account))") }
    return lines
  }
}
