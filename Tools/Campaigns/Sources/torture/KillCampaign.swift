#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif
import ArgumentParser
import Tidemark

/// Kills a real process that writes to a real disk, and looks whether everything that it had
/// been told was kept is there.
struct KillCampaign {
  var directory: String
  var seed: UInt64
  var kills: Int
  var minutes: Double?

  /// A store grows no larger than this many entries before a new one is begun.
  private static let entriesPerStore: UInt64 = 60_000

  func run() throws {
    let clock = ContinuousClock()
    let start = clock.now
    var chance = seed
    var done = 0
    var entries: UInt64 = 0
    var path = ""
    while done < kills {
      if let minutes, clock.now - start > .seconds(minutes * 60) { break }
      if path.isEmpty { path = directory + "/torture-kill-\(getpid())-\(done)" }
      chance = chance &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let delay = UInt32(chance >> 33 % 250_000)
      let told = try kill(path, after: delay)
      let reached = try check(path, told: told)
      done += 1
      if reached > Self.entriesPerStore {
        entries += reached
        Directories.remove(path)
        path = ""
      }
      if done % 100 == 0 { Output.line("\(done) kills") }
    }
    if !path.isEmpty { Directories.remove(path) }
    let seconds = (clock.now - start) / .seconds(1)
    Output.line("\(done) kills in \(Int(seconds)) s, all acknowledged entries were there")
  }

  /// Starts the child and kills it.
  /// - Returns: how far it said that it had come.
  private func kill(_ path: String, after microseconds: UInt32) throws -> UInt64 {
    let child = try ChildProcess([
      "kill-child", "--directory", path, "--seed", "\(seed)",
    ])
    defer { child.close() }
    // The first word says that the store is open; what is read while it runs keeps it going.
    var told: UInt64 = 0
    var words = 0
    let clock = ContinuousClock()
    let end = clock.now + .microseconds(Int(microseconds))
    while clock.now < end || words == 0 {
      guard let word = child.next() else {
        throw Files.Failure(description: "the child ended by itself; its store is \(path)")
      }
      told = word
      words += 1
    }
    child.kill()
    while let word = child.next() { told = word }
    return told
  }

  /// Opens what the child has left.
  /// - Returns: how far it goes.
  private func check(_ path: String, told: UInt64) throws -> UInt64 {
    let store = try Store.openBlocking(at: path)
    let reached = store.lastSequence
    guard reached >= told else {
      throw failure("only \(reached) is left of \(told)", path)
    }
    guard let state = KillWork(seed: seed).state(after: reached) else {
      throw failure("sequence \(reached) is inside a batch", path)
    }
    guard try store.status.keys == state.count else {
      throw failure("it has too few or too many keys", path)
    }
    for (key, value) in state where try store.value(forKey: key) != value {
      throw failure("\(key) reads wrongly at \(reached)", path)
    }
    try store.blocking.close()
    return reached
  }

  private func failure(_ text: String, _ path: String) -> any Error {
    Output.line("FAILED: \(text); seed \(seed), the store is \(path)")
    return ExitCode.failure
  }
}
