#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

// C's `close` and `kill`, which `ChildProcess` cannot call by name: it has methods of that name.
private func closeFile(_ descriptor: Int32) { close(descriptor) }
private func killProcess(_ process: pid_t) { kill(process, SIGKILL) }

/// This program once more, as a process that can be killed, and that says on its standard output,
/// in words of eight bytes, how far it is.
final class ChildProcess {
  private let process: pid_t
  private let output: Int32
  private var hasEnded = false

  /// - Parameter arguments: of the process, its name apart.
  init(_ arguments: [String]) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Files.Failure(description: "no pipe") }
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_addclose(&actions, ends[1])
    posix_spawn_file_actions_addclose(&actions, ends[0])
    let words = [CommandLine.arguments[0]] + arguments
    var pointers = words.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    var child: pid_t = 0
    guard posix_spawn(&child, words[0], &actions, nil, pointers, environ) == 0 else {
      throw Files.Failure(description: "\(words[0]) cannot be started")
    }
    closeFile(ends[1])
    process = child
    output = ends[0]
  }

  /// The next word; nil once the process is dead and all was read.
  func next() -> UInt64? {
    var word: UInt64 = 0
    var count = 0
    while count < 8 {
      let got = withUnsafeMutableBytes(of: &word) { buffer in
        read(output, buffer.baseAddress.map { $0 + count }, 8 - count)
      }
      if got <= 0 { return nil }
      count += got
    }
    return UInt64(littleEndian: word)
  }

  /// Kills the process. Words that it has said by then can be read still.
  func kill() {
    killProcess(process)
    wait()
  }

  /// Waits until the process has ended.
  /// - Returns: its status.
  @discardableResult
  func wait() -> Int32 {
    var status: Int32 = 0
    guard !hasEnded else { return status }
    waitpid(process, &status, 0)
    hasEnded = true
    return status
  }

  /// Listens no more.
  func close() { closeFile(output) }
}

/// A child's end of the pipe.
enum Said {
  /// Says how far the child is. Eight bytes go into a pipe whole or not at all.
  static func word(_ number: UInt64) throws {
    var word = number.littleEndian
    guard write(1, &word, 8) == 8 else {
      throw Files.Failure(description: "nobody listens any more")
    }
  }
}

/// Stores on the disk.
enum Directories {
  static func remove(_ path: String) {
    for folder in ["log", "index", "quarantine", "hints", "attachments", ""] {
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
