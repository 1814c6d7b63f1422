import Dispatch
import Foundation
import Tidemark

/// The price of live results: to writers whom nobody watches, and of one change in a long list.
struct ObserverCost {
  private static let observers = 1_000
  private static let rows = 10_000
  private let packages: [DebPackage]

  init(_ packages: [DebPackage]) { self.packages = packages }

  func report() throws {
    let store = try Store.openBlocking(at: .inMemory)
    let collection = try store.collection(
      DebPackage.self, named: "packages",
      CollectionSchema(indexes: [ObjectIndex("size", \.size)]), id: { $0.name })
    var batch = WriteBatch()
    let listed = packages.prefix(Self.rows)
    for package in listed { try batch.put(package, in: collection) }
    try store.blocking.write(batch)
    // By turns, so that what the machine does besides meets both.
    var alone: [Double] = []
    var watched: [Double] = []
    for _ in 0..<5 {
      alone.append(try puts(store))
      let tasks = (0..<Self.observers).map { number in
        Task.detached {
          for try await _ in store.values(forKey: "watched/\(number)") {}
        }
      }
      try settle()
      watched.append(try puts(store))
      for task in tasks { task.cancel() }
      try settle()
    }
    let (a, b) = (Statistics(alone).median, Statistics(watched).median)
    print(
      "\na put takes \(Figures.short(a)) us, with \(Self.observers) observers of other keys "
        + "\(Figures.short(b)) us: \(Figures.short((b / a - 1) * 100)) % more")
    let change = try changes(collection, listed.map(\.name))
    print(
      "a change in an observed list of \(listed.count) objects takes "
        + "\(Figures.short(change)) us of processor more than one that nobody observes")
    try store.blocking.close()
  }

  private func settle() throws {
    // Tasks begin and end by themselves.
    DispatchQueue.global().sync {}
    usleep(200_000)
  }

  private func puts(_ store: Store) throws -> Double {
    let count = 20_000
    let value = [UInt8](repeating: 0x61, count: 250)
    return try Cost {
      for number in 0..<count { try store.blocking.put("other/\(number % 5_000)", value) }
    }.wall * 1e6 / Double(count)
  }

  /// Processor of one change, with and without a list that has it, in microseconds.
  private func changes(
    _ collection: ObjectCollection<DebPackage, String>, _ names: [String]
  ) throws -> Double {
    let count = 300
    func cost(_ wait: () -> Void) throws -> Double {
      try Cost {
        for number in 0..<count {
          let name = names[number * 31 % names.count]
          guard var package = try collection.get(name) else { continue }
          package.size += 1
          var batch = WriteBatch()
          try batch.put(package, in: collection)
          try collection.store.blocking.write(batch)
          wait()
        }
      }.processor * 1e6 / Double(count)
    }
    let alone = try cost {}
    let seen = DispatchSemaphore(value: 0)
    let task = Task.detached {
      for try await _ in collection.observe(sort: [.ascending(\.size)]) { seen.signal() }
    }
    seen.wait()
    let watched = try cost { seen.wait() }
    task.cancel()
    return watched - alone
  }
}
