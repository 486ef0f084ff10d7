vim.filetype.add({ extension = { fuse = "fuse" } })

vim.lsp.config("fusec", {
    cmd = { "fusec", "lsp" },
    filetypes = { "fuse" },
    root_markers = { ".git" },
})
vim.lsp.enable("fusec")

vim.api.nvim_create_autocmd("LspAttach", {
    callback = function(args)
        local client = vim.lsp.get_client_by_id(args.data.client_id)
        if not client or client.name ~= "fusec" then
            return
        end
        vim.bo[args.buf].commentstring = "# %s"
        vim.lsp.inlay_hint.enable(true, { bufnr = args.buf })
        vim.lsp.completion.enable(true, client.id, args.buf, { autotrigger = true })
        local refresh = function()
            vim.lsp.codelens.refresh({ bufnr = args.buf })
        end
        vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave" }, { buffer = args.buf, callback = refresh })
    end,
})
