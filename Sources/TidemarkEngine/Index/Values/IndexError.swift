/// Why the index could not answer.
package enum IndexError: Error, Sendable {
  /// A chunk of the sorted run does not match its checksum, or what it holds contradicts the rest.
  /// The sorted run is void, as after `runInvalid`: the index is made anew by a replay of the log.
  case runDamaged(chunk: Int)
  /// The sorted run's header is damaged, from a later version, or of another file, or counts
  /// differ.
  case runInvalid(FormatError)
  /// Reading or writing the sorted run failed.
  case fileSystem(FileSystemError)
  /// A key, a set of labels or the number of them is beyond what the index can hold.
  case limitExceeded
}
