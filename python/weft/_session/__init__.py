"""Jobs whose PE 0 is this process, which starts the other PEs itself: weft.run(main, pes=N), weft.session."""
