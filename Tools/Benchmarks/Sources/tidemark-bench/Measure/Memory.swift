import Foundation

/// Memory that a process has in RAM, in bytes.
struct Memory: Codable {
  /// Memory of its own.
  var own: Int
  /// Pages of files that it has mapped; the kernel can take them back.
  var mapped: Int

  var resident: Int { own + mapped }

  static func now() -> Memory {
    #if !canImport(Darwin)
      let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      func bytes(_ name: String) -> Int {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
          let words = line.split(whereSeparator: \.isWhitespace)
          return words.count > 1 ? (Int(words[1]) ?? 0) << 10 : 0
        }
        return 0
      }
      return Memory(own: bytes("RssAnon:"), mapped: bytes("RssFile:") + bytes("RssShmem:"))
    #else
      var usage = rusage()
      getrusage(RUSAGE_SELF, &usage)
      return Memory(own: usage.ru_maxrss, mapped: 0)
    #endif
  }

  static func - (a: Memory, b: Memory) -> Memory {
    Memory(own: a.own - b.own, mapped: a.mapped - b.mapped)
  }
}
