#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
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
        try remove(path)
        path = ""
      }
      if done % 100 == 0 { Output.line("\(done) kills") }
    }
    if !path.isEmpty { try remove(path) }
    let seconds = (clock.now - start) / .seconds(1)
    Output.line("\(done) kills in \(Int(seconds)) s, all acknowledged entries were there")
  }

  /// Starts the child and kills it.
  /// - Returns: how far it said that it had come.
  private func kill(_ path: String, after microseconds: UInt32) throws -> UInt64 {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Files.Failure(description: "no pipe") }
    let child = try spawn(path, output: ends[1], closing: ends[0])
    close(ends[1])
    defer { close(ends[0]) }
    // The first word says that the store is open; what is read while it runs keeps it going.
    var told: UInt64 = 0
    var words = 0
    let clock = ContinuousClock()
    let end = clock.now + .microseconds(Int(microseconds))
    while clock.now < end || words == 0 {
      guard let word = next(ends[0]) else {
        throw Files.Failure(description: "the child ended by itself; its store is \(path)")
      }
      told = word
      words += 1
    }
    _ = Self.signal(child, SIGKILL)
    while let word = next(ends[0]) { told = word }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    return told
  }

  private static func signal(_ process: pid_t, _ number: Int32) -> Int32 {
    #if canImport(Glibc)
      Glibc.kill(process, number)
    #elseif canImport(Musl)
      Musl.kill(process, number)
    #else
      Darwin.kill(process, number)
    #endif
  }

  /// The next word of the child; nil once it is dead and all was read.
  private func next(_ descriptor: Int32) -> UInt64? {
    var word: UInt64 = 0
    var count = 0
    while count < 8 {
      let got = withUnsafeMutableBytes(of: &word) { buffer in
        read(descriptor, buffer.baseAddress.map { $0 + count }, 8 - count)
      }
      if got <= 0 { return nil }
      count += got
    }
    return UInt64(littleEndian: word)
  }

  private func spawn(_ path: String, output: Int32, closing other: Int32) throws -> pid_t {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_addclose(&actions, output)
    posix_spawn_file_actions_addclose(&actions, other)
    let words = [
      CommandLine.arguments[0], "kill-child", "--directory", path, "--seed", "\(seed)",
    ]
    var arguments = words.map { strdup($0) }
    arguments.append(nil)
    defer { for argument in arguments { free(argument) } }
    var child: pid_t = 0
    guard posix_spawn(&child, words[0], &actions, nil, arguments, environ) == 0 else {
      throw Files.Failure(description: "\(words[0]) cannot be started")
    }
    return child
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

  private func remove(_ path: String) throws {
    for folder in ["log", "index", "quarantine", ""] {
      let place = folder.isEmpty ? path : path + "/" + folder
      guard let listing = opendir(place) else { continue }
      while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { unlink(place + "/" + name) }
      }
      closedir(listing)
      rmdir(place)
    }
  }
}
