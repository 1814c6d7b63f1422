import Testing

@Suite("Undoing")
struct UndoTests {
  private let bench = Bench()

  /// The notes of other tests, each line a commit of its own.
  init() {
    for line in Bench.notes.split(separator: "\n") {
      bench.run("import", "S", input: String(line))
    }
  }

  @Test("undo --since gives every key the state that it had then, by new entries")
  func since() throws {
    let planned = bench.run("undo", "S", "--since", "3", "--dry-run")
    #expect(planned.lines.sorted() == ["+\tnote/2", "-\tnote/3", "~\tnote/1"])
    let then = bench.run("export", "S", "--at", "3").output
    #expect(bench.run("export", "S").output != then)
    let run = bench.run("undo", "S", "--since", "3")
    #expect(run.status == 0 && run.talk == "undone at sequence 9\n", "\(run.talk)")
    #expect(bench.run("export", "S").output == then)
    // The history stays, and so an undo can be undone.
    #expect(bench.run("undo", "S", "--since", "6").status == 0)
    #expect(bench.run("get", "S", "note/1").output == "milk, bread")
    #expect(bench.run("get", "S", "note/2").status == 1)
  }

  @Test("undo --range takes back these entries alone")
  func range() throws {
    let run = bench.run("undo", "S", "--range", "4-5", "--output", "json")
    #expect(run.output == #"{"applied":2,"sequence":8}"# + "\n", "\(run.talk)")
    #expect(bench.run("get", "S", "note/1").output == "milk")
    #expect(bench.run("get", "S", "note/2").output == "call")
    #expect(bench.run("get", "S", "note/3").status == 0)
    #expect(bench.run("undo", "S", "--range", "6").status == 0)
    #expect(bench.run("get", "S", "note/3").status == 1)
  }

  @Test("undo --range of a key that was written again since undoes nothing and exits 1")
  func conflict() throws {
    for extra in [[], ["--dry-run"]] {
      let run = bench.run(["undo", "S", "--range", "1-3"] + extra)
      #expect(run.status == 1 && run.talk.contains("written again since"), "\(run.talk)")
    }
    #expect(bench.run("export", "S", "--history").lines.count == 6)
  }

  @Test("undo refuses sequences that are not there, in words of the one that was given")
  func refusals() {
    for range in ["6-9", "9"] {
      let run = bench.run("undo", "S", "--range", range)
      #expect(
        run.status == 64 && run.talk.contains("sequence 9 is not reached yet"), "\(run.talk)")
    }
    #expect(bench.run("undo", "S", "--since", "9").status == 64)
    for range in ["0-1", "5-4", "x", "", "1-", "-1", "1-2-3", "18446744073709551615"] {
      let run = bench.run("undo", "S", "--range", range)
      #expect(run.status == 64 && run.talk.contains("two sequences"), "\(range): \(run.talk)")
    }
    #expect(bench.run("undo", "S").status == 64)
    #expect(bench.run("undo", "S", "--since", "1", "--range", "2").status == 64)
  }

  @Test("undo of a part of a commit is 64, and says what the whole is")
  func partOfCommit() {
    bench.run("import", "S", input: Bench.notes)
    for wanted in [["--since", "8"], ["--range", "7-8"], ["--range", "9"]] {
      let run = bench.run(["undo", "S"] + wanted)
      #expect(run.status == 64, "\(wanted)")
      #expect(run.talk.contains("7 to 12 are one commit"), "\(run.talk)")
      #expect(run.talk.contains("give --since 6, or --range 7-12"), "\(run.talk)")
    }
    #expect(bench.run("undo", "S", "--range", "7-12").status == 0)
  }

  @Test("undo of nothing says so")
  func nothing() {
    let run = bench.run("undo", "S", "--since", "6")
    #expect(run.status == 0 && run.talk == "nothing to undo\n", "\(run.talk)")
    #expect(bench.run("export", "S", "--history").lines.count == 6)
  }
}
