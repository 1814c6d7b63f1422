public import Tidemark

/// A ledger whose balances are made of its payments: nothing is ever written over.
public struct Ledger: Sendable {
  /// A payment from one account to another.
  public struct Payment: Codable, Sendable, Identifiable {
    public var id: String
    public var from: String
    public var to: String
    public var amount: Int
  }

  /// The balances, and the payments that count.
  struct Books: Codable, Sendable {
    var balances: [String: Int] = [:]
    var counted: [String: Payment] = [:]

    mutating func count(_ payment: Payment, _ amount: Int) {
      balances[payment.from, default: 0] -= amount
      balances[payment.to, default: 0] += amount
    }
  }

  let payments: ObjectCollection<Payment, String>
  let books: Projection<Books>

  public init(_ store: Store) throws {
    let payments = try store.collection(
      Payment.self, named: "payments", CollectionSchema(indexes: [ObjectIndex("from", \.from)]))
    self.payments = payments
    books = try store.projection(
      named: "books", initial: Books(), prefix: "payments/"
    ) { books, entry in
      guard let id = payments.id(of: entry) else { return }
      // A payment that is taken back, or replaced, counts no more.
      if let before = books.counted.removeValue(forKey: id) { books.count(before, -before.amount) }
      guard let payment = try payments.object(of: entry) else { return }
      books.counted[id] = payment
      books.count(payment, payment.amount)
    }
  }

  /// Pays, and says which commit it was.
  public func pay(_ id: String, from: String, to: String, _ amount: Int) async throws
    -> WriteReceipt
  {
    try await payments.insert(Payment(id: id, from: from, to: to, amount: amount))
  }

  /// Takes a payment back, by a new entry.
  public func undo(_ receipt: WriteReceipt) async throws {
    try await payments.store.undo(receipt.sequences)
  }

  /// The balance of an account, with everything that was paid before.
  public func balance(_ account: String) async throws -> Int {
    try await books.caughtUp().balances[account] ?? 0
  }

  /// The payments of an account.
  public func payments(from account: String) throws -> [Payment] {
    try payments.find(\.from == account)
  }
}
